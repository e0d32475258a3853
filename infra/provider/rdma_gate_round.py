"""Runs the RDMA gate between pairs of nodes at the same time: two Jobs a pair, and the verdict on their logs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from infra.provider.kubernetes_api import Json, KubernetesApi, Unavailable
from infra.provider.pod_reasons import not_ready, summary
from infra.provider.resource import Operation, Properties, ResourceError
from serving.rdma_gate.gate_run import SideName
from serving.rdma_gate.jobs import gate_job, job_name
from serving.rdma_gate.pairs import Pair
from serving.rdma_gate.result import RunResult, Terms, not_run, results_of
from serving.rdma_gate.run import deadline_seconds

_POLL_SECONDS = 1.0
# A pod's start: its node has the image since the inspector ran there, and GPUs of an engine that ended are free within
# its 120 s of grace.
_START_SECONDS = 300.0
_LATE_SECONDS = 60.0  # behind a Job's own deadline, which counts from when the controller saw it
# A server whose client is through ends with it, unless runs of that client failed before they reached it.
_AFTER_CLIENT_SECONDS = 15.0
_ENDED = ("Succeeded", "Failed")


@dataclass
class _Side:
    """One Job with its pod, as far as it is."""

    pair: Pair
    side: SideName
    job: Json
    began: float = field(default_factory=monotonic)
    pod: Json | None = None
    ended_at: float | None = None

    @property
    def name(self) -> str:
        return self.job["metadata"]["name"]

    @property
    def phase(self) -> str:
        return (self.pod or {}).get("status", {}).get("phase", "")

    @property
    def address(self) -> str:
        return (self.pod or {}).get("status", {}).get("podIP", "")


class Round:
    """Pairs that run at the same time. template: of the gate's pods. `run` is called once."""

    def __init__(self, api: KubernetesApi, namespace: str, template: Json, terms: Terms) -> None:
        self._api, self._namespace, self._template, self._terms = api, namespace, template, terms
        self._jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"

    def run(self, pairs: Sequence[Pair], operation: Operation, what: str) -> list[RunResult]:
        """Verdicts on all runs of these pairs. Jobs of pairs that passed go, others stay. Raises ResourceError."""
        results: list[RunResult] = []
        servers = {pair: self._start(pair, "server") for pair in pairs}
        clients: dict[Pair, _Side] = {}
        waiting = dict(servers)
        while waiting:
            for pair in list(waiting):
                server, client = servers[pair], clients.get(pair)
                for side in (server, client):
                    if side is not None:
                        self._look(side)
                if client is None and server.address and server.phase in ("Running", *_ENDED):
                    clients[pair] = self._start(pair, "client", server.address)
                elif (why := self._stuck(server, client)) or (client is not None and self._over(server, client)):
                    results += self._judged(pair, server, client, why)
                    del waiting[pair]
            if waiting:
                operation.wait(f"{what}: {_named(waiting)}", _POLL_SECONDS)
        return results

    def _start(self, pair: Pair, side: SideName, peer: str = "") -> _Side:
        terms = self._terms
        job = gate_job(self._template, pair, side, terms.devices, terms.memory, peer)
        return _Side(pair, side, self._api.post(self._jobs, job))

    def _look(self, side: _Side) -> None:
        if side.ended_at is not None:
            return
        uid = side.job["metadata"]["uid"]
        try:
            pods = self._api.list(self._pods, labelSelector=f"batch.kubernetes.io/job-name={side.name}")
        except Unavailable:  # a control plane may restart; pods go on meanwhile
            return
        for pod in pods:
            if any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or []):
                side.pod = pod
        if side.phase in _ENDED:
            side.ended_at = monotonic()

    def _stuck(self, server: _Side, client: _Side | None) -> str:
        """Why a pod has not started, or not ended, in its time, in a line."""
        for side in (server, client):
            if side is None or side.phase in _ENDED:
                continue
            # One that ran and was evicted is never seen to end: its Job has deleted it.
            most = deadline_seconds(len(self._terms.devices)) + _LATE_SECONDS
            limit, done = (most, "end") if side.phase == "Running" else (_START_SECONDS, "start")
            if monotonic() - side.began < limit:
                continue
            node = side.pair.client if side.side == "client" else side.pair.server
            reasons = summary(not_ready([side.pod])) if side.pod else "the Job has no pod"
            because = f" ({reasons})" if reasons else ""
            return f"the {side.side}'s pod did not {done} on {node} within {limit:.0f} s{because}"
        return ""

    def _over(self, server: _Side, client: _Side) -> bool:
        if client.ended_at is None:
            return False
        return server.ended_at is not None or monotonic() - client.ended_at > _AFTER_CLIENT_SECONDS

    def _judged(self, pair: Pair, server: _Side, client: _Side | None, why: str) -> list[RunResult]:
        if why or client is None:
            found = [not_run(pair, self._terms, why)]
        else:
            nodes = {it.side: (it.pod or {}).get("spec", {}).get("nodeName", "") for it in (client, server)}
            found = results_of(pair, self._terms, self._log(client), self._log(server), nodes)
        passed = all(result.passed for result in found)
        for side in filter(None, (server, client)):
            path = f"{self._jobs}/{side.name}"
            if passed or side.ended_at is None:  # one that still runs would keep its node's GPUs
                self._api.delete(path, propagationPolicy="Foreground")
            else:  # for whoever wants to read its log
                self._api.patch(path, {"spec": {"ttlSecondsAfterFinished": None}})
        return found

    def _log(self, side: _Side) -> str:
        if side.pod is None:
            return ""
        return self._api.text(f"{self._pods}/{side.pod['metadata']['name']}/log") or ""


def remove_jobs(api: KubernetesApi, namespace: str, selector: str, operation: Operation, seconds: float) -> None:
    """Delete the gate's Jobs with their pods, and wait until they are gone. Raises ResourceError."""
    jobs, began = f"/apis/batch/v1/namespaces/{namespace}/jobs", monotonic()
    asked: set[str] = set()
    while left := api.list(jobs, labelSelector=selector):
        for job in left:
            if job["metadata"]["uid"] not in asked:
                asked.add(job["metadata"]["uid"])
                api.delete(f"{jobs}/{job['metadata']['name']}", propagationPolicy="Foreground")
        if monotonic() - began > seconds:
            names = ", ".join(job["metadata"]["name"] for job in left)
            raise ResourceError(f"Jobs {names} in namespace {namespace} do not go within {seconds:.0f} s; delete them")
        operation.wait("Jobs of an earlier RDMA gate to go", 0.5)


def log_command(namespace: str, pairs: Sequence[int]) -> str:
    """How the logs of pairs with these numbers are read while their Jobs are there."""
    first, *others = (f"job/{job_name(pair, 'client')}" for pair in pairs)
    also = ", ".join([*others, "-server for -client"])
    return f"`kubectl --namespace {namespace} logs {first}` ({also})"


def _named(pairs: Iterable[Pair]) -> str:
    return ", ".join(f"{pair.client} from {pair.server}" for pair in pairs)


def terms_of(inputs: Properties) -> Terms:
    told = inputs["terms"]
    return Terms(
        devices=tuple(told["devices"]),
        memory=told["memory"],
        link_gbps=told.get("linkGbps") or None,
        floor_gbps=told.get("floorGbps") or None,
        hardware=None if told.get("hardware") is None else frozenset(told["hardware"]),
    )
