"""Proves RDMA between the nodes before anything serves: Jobs that run `ucx_perftest`, and a verdict on their logs.

Inputs: kubeconfig, context, namespace, stack, mode (`required`, `warn`, `off`; `none` where there is nothing to prove),
reason (why nothing is proven, with the last two), template (of a pod: serving/rdma_gate/jobs.py), nodes (names; empty:
those with the labels of nodeSelector), nodeSelector, replicas, gpuResource, terms {devices, memory, linkGbps,
floorGbps, hardware}.
Outputs: state (`passed`, `warned`, `off`, `none`), summary (a line), outcome (`passed`, `failed`, or empty when nothing
ran), verdicts (serving/rdma_gate/result.py, as objects), known (nodes that need no other gate), untested (those of them
that were not tested -> the pod that held them).

Another image, variable or node needs another gate, and the gate needs the GPUs that engines hold. So such a change is a
replacement of this resource, before which the RayService is deleted (infra/ray_service.py: `replace_with`). A gate that
failed is recorded with its verdicts; with `required` the next update replaces it, which is to say, tries again.
"""

from contextlib import suppress
from threading import Event
from typing import Any

from infra.provider.kubernetes_api import KubernetesApi
from infra.provider.rdma_gate_nodes import gate_nodes
from infra.provider.rdma_gate_round import Round, log_command, remove_jobs, terms_of
from infra.provider.recorded_way_in import end_if_lost
from infra.provider.resource import Interrupted, Operation, PartlyMade, Properties, ResourceError
from serving.kubernetes_names import RAY_SERVICE, RDMA_GATE
from serving.rdma_gate.pairs import rounds
from serving.rdma_gate.result import RunResult, not_run

_RUNS = ("required", "warn")
# What was tested. Not the way to it: a kubeconfig may be renewed.
_TESTED = ("namespace", "template", "terms")
_GONE_SECONDS = 120.0  # a pod's end takes 5 s of grace, and a kubelet that is busy
_CLEAN_UP_SECONDS = 30.0  # of the minute that a plugin is given after a Ctrl-C (server.py)
_FAILED_SHOWN = 12  # lines; a path that is wrong is mostly wrong everywhere


class RdmaGate:
    """Implements infra.provider.resource.Resource."""

    def check(self, olds: Properties, news: Properties) -> list[str]:
        return []

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        if news["mode"] in _RUNS and (why := _untested(olds, news)):
            return why
        return any(olds.get(key) != value for key, value in news.items())

    def planned(self, inputs: Properties) -> Properties:
        return {} if inputs["mode"] in _RUNS else _nothing_ran(inputs)

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        resource_id = f"{inputs['namespace']}/{RDMA_GATE}"
        if inputs["mode"] not in _RUNS:
            return resource_id, _nothing_ran(inputs)
        api = _api(inputs)
        _check_gpus_are_free(api, inputs)
        try:
            verdicts, untested = self._run(api, inputs, operation)
        except ResourceError:
            with suppress(ResourceError):  # it is not interrupted by the same Ctrl-C
                _remove(api, inputs, Operation(operation.say, Event()), _CLEAN_UP_SECONDS)
            raise
        outputs = _outputs(inputs, [result.as_dict() for result in verdicts], untested)
        self._tell(inputs, outputs, operation)
        if outputs["outcome"] == "failed" and inputs["mode"] == "required":
            lines = [f"{outputs['summary']}; nothing serves (fabric.gate: required)", *_failures(inputs, outputs)]
            raise PartlyMade("\n".join(lines), resource_id, inputs, outputs)
        return resource_id, outputs

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        return outputs, {}

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties:
        """Nothing that was tested has changed: what was found still holds, and may count for something else now."""
        if news["mode"] not in _RUNS:
            _remove(_api(news), news, operation)
            return _nothing_ran(news)
        outputs = _outputs(news, olds["verdicts"], olds.get("untested") or {}, known=olds.get("known") or [])
        if olds.get("mode") != news["mode"]:
            self._tell(news, outputs, operation)
        return outputs

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None:
        """Jobs of pairs that failed stay until here. A cluster that is gone for good must not keep the stack."""
        if outputs["mode"] not in _RUNS:
            return
        try:
            _remove(_api(outputs), outputs, operation)
        except Interrupted:
            raise
        except ResourceError as error:
            end_if_lost(outputs)  # of a stack that never became ready, a destroy comes here first
            operation.say(f"Jobs of the RDMA gate may be left in namespace {outputs['namespace']}: {error}", True)

    def interrupted(self) -> None:
        """A running gate hears of it through its operation, and takes its Jobs away."""

    def _run(
        self, api: KubernetesApi, inputs: Properties, operation: Operation
    ) -> tuple[list[RunResult], dict[str, str]]:
        _remove(api, inputs, operation)  # of a gate whose `pulumi up` was killed
        terms = terms_of(inputs)
        if terms.devices and not (terms.link_gbps or terms.floor_gbps):
            raise ResourceError("RDMA gate: the speed of the NICs' links is not known; set fabric.floorGbps")
        nodes, untested = gate_nodes(api, inputs)
        if note := _not_tested(untested):
            operation.say(f"RDMA gate: {note}", True)
        planned = rounds(nodes)
        if not terms.devices:  # with `warn`: what keeps the nodes from having one is said already
            return [not_run(pair, terms, "no RDMA device to test") for pairs in planned for pair in pairs], untested
        verdicts: list[RunResult] = []
        for number, pairs in enumerate(planned, 1):
            what = f"RDMA gate, round {number} of {len(planned)}"
            operation.say(f"{what}: {', '.join(f'{pair.client} reads from {pair.server}' for pair in pairs)}", True)
            verdicts += Round(api, inputs["namespace"], inputs["template"], terms).run(pairs, operation, what)
        return verdicts, untested

    def _tell(self, inputs: Properties, outputs: Properties, operation: Operation) -> None:
        if outputs["state"] == "warned":
            for line in (outputs["summary"], *_failures(inputs, outputs)):
                operation.warning(line)
        elif outputs["state"] == "passed":
            operation.say(outputs["summary"], True)


def _untested(olds: Properties, news: Properties) -> list[str]:
    """The inputs that another gate is needed for. Fewer nodes need none."""
    changed = [key for key in _TESTED if olds.get(key) != news[key]]
    if not set(news["nodes"]) <= set(olds.get("known") or ()):
        changed.append("nodes")
    # More engines than nodes that were tested: one would run where nothing was shown.
    if news["replicas"] > len({verdict["client"] for verdict in olds.get("verdicts") or ()}):
        changed.append("replicas")
    ran = olds.get("outcome") or ""
    if not changed and (not ran or (ran == "failed" and news["mode"] == "required")):
        changed.append("mode")
    return changed


def _nothing_ran(inputs: Properties) -> Properties:
    return {
        "state": inputs["mode"],
        "summary": inputs["reason"],
        "outcome": "",
        "verdicts": [],
        "known": [],
        "untested": {},
    }


def _outputs(
    inputs: Properties, verdicts: list[dict[str, Any]], untested: dict[str, str], known: list[str] | None = None
) -> Properties:
    # Without an inspector the nodes that there are now are not told.
    still = {node: pod for node, pod in untested.items() if node in inputs["nodes"] or not inputs["nodes"]}
    note = _not_tested(still)
    failed = [verdict for verdict in verdicts if not verdict["passed"]]
    count = f"{len(failed)} of {len(verdicts)} runs failed" if failed else f"{len(verdicts)} runs passed"
    nodes = {verdict["client"] for verdict in verdicts}
    speeds = [verdict["gbps"] for verdict in verdicts if verdict["gbps"] is not None]
    least = "" if failed or not speeds else f", GPU memory direct, {min(speeds):.0f} Gb/s at least"
    return {
        "state": "warned" if failed else "passed",
        "summary": f"RDMA gate: {count} between {len(nodes)} nodes{least}{f'; {note}' if note else ''}",
        "outcome": "failed" if failed else "passed",
        "verdicts": verdicts,
        "known": sorted({*inputs["nodes"], *(known or [])}),
        "untested": untested,
    }


def _not_tested(nodes: dict[str, str]) -> str:
    each = [f"{node} (held by {pod})" for node, pod in sorted(nodes.items())]
    return f"not tested: {', '.join(each)}" if each else ""


def _failures(inputs: Properties, outputs: Properties) -> list[str]:
    """A line for each run that failed, each probable cause once, and where the logs are."""
    failed = [RunResult(**verdict) for verdict in outputs["verdicts"] if not verdict["passed"]]
    lines = [f"  {result}" for result in failed[:_FAILED_SHOWN]]
    if more := failed[_FAILED_SHOWN:]:
        lines.append(f"  and {len(more)} more, in the verdicts of `pulumi stack export`")
    lines += [
        f"  probable cause: {cause}" for cause in dict.fromkeys(result.cause for result in failed if result.cause)
    ]
    pairs = sorted({result.pair for result in failed})
    return [*lines, f"  logs, until the next update: {log_command(inputs['namespace'], pairs)}"] if failed else []


def _check_gpus_are_free(api: KubernetesApi, inputs: Properties) -> None:
    """A stack that had no gate before (an earlier version of this project) has engines that nothing takes away."""
    home = inputs["namespace"]
    service = api.get(f"/apis/ray.io/v1/namespaces/{home}/rayservices/{RAY_SERVICE}")
    if service is not None and not service["metadata"].get("deletionTimestamp"):
        raise ResourceError(
            f"RDMA gate: RayService {home}/{RAY_SERVICE} holds the GPUs that the gate needs; `pulumi destroy` and "
            "`pulumi up`, or set fabric.gate: off"
        )


def _remove(api: KubernetesApi, properties: Properties, operation: Operation, seconds: float = _GONE_SECONDS) -> None:
    selector = f"app.kubernetes.io/component={RDMA_GATE},app.kubernetes.io/instance={properties['stack']}"
    remove_jobs(api, properties["namespace"], selector, operation, seconds)


def _api(properties: Properties) -> KubernetesApi:
    return KubernetesApi(properties["kubeconfig"], properties["context"])
