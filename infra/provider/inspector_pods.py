"""The fabric inspector's pods: which nodes they are on, and what each has said of its node."""

from pydantic import ValidationError

from infra.provider.kubernetes_api import Forbidden, Json, KubernetesApi, Unavailable
from infra.provider.pod_reasons import not_ready, summary
from infra.provider.resource import Properties, ResourceError
from serving.fabric.node import NodeFabric

_TAIL = 20  # lines: what is looked for is the last one
_NAMED = 5


class Inspectors:
    """Pods of one DaemonSet. told: node -> what its pod has said, complete once `look` waits for nothing.

    told_by: the generation of the DaemonSet that they are of. notes: what was left out, a line each.
    """

    def __init__(self, api: KubernetesApi, inputs: Properties) -> None:
        self._api = api
        self._name, self._home = inputs["daemonSet"], inputs["namespace"]
        self._uid = inputs["uid"]
        self._selector = f"app.kubernetes.io/component={self._name},app.kubernetes.io/instance={inputs['stack']}"
        self._by_pod: dict[str, NodeFabric] = {}  # uid of a pod -> what it said; a pod says it once
        self.told: dict[str, NodeFabric] = {}
        self.told_by = 0
        self.notes: list[str] = []

    def nodes(self) -> set[str]:
        """Names of the nodes that count: those with a pod, but for those engines cannot get. Raises ResourceError."""
        away = self._away()
        return {node for pod in self._pods() if (node := pod["spec"].get("nodeName")) and node not in away}

    def generation(self) -> int:
        """Of the DaemonSet now: `kubectl rollout restart` makes another one. 0 without it. Raises ResourceError."""
        return (self._set() or {}).get("metadata", {}).get("generation", 0)

    def look(self) -> str:
        """What is still waited for, in words, or nothing. Raises ResourceError for what waiting cannot mend."""
        there = self._set()
        if there is None or there["metadata"]["uid"] != self._uid:
            raise ResourceError(f"DaemonSet {self._home}/{self._name} was deleted by somebody; run `pulumi refresh`")
        status = there.get("status") or {}
        wanted = status.get("desiredNumberScheduled", 0)
        if status.get("observedGeneration", 0) < there["metadata"]["generation"] or not wanted:
            return "the fabric inspector to be given nodes"
        pods, away = self._pods(), self._away()
        if status.get("updatedNumberScheduled", 0) < wanted or len(pods) < wanted:
            return f"the fabric inspector on {wanted} nodes, {min(len(pods), wanted)} have its pod"
        silent = {}
        told: dict[str, NodeFabric] = {}
        for pod in pods:
            node = pod["spec"].get("nodeName", "")
            if node in away:
                continue
            if fabric := self._said(pod):
                told[node] = fabric
            else:
                silent[pod["metadata"]["name"]] = pod
        if silent:
            names = sorted(pod["spec"].get("nodeName", "no node yet") for pod in silent.values())
            shown = ", ".join(names[:_NAMED]) + (", ..." if names[_NAMED:] else "")
            reasons = summary(not_ready(silent.values()))
            return f"the fabric of {shown}" + (f" ({reasons})" if reasons else "")
        if not told:
            return "a node that is Ready and not cordoned"
        self.told, self.told_by = told, there["metadata"]["generation"]
        self.notes = [f"{', '.join(sorted(away))} left out: not Ready, or cordoned"] if away else []
        return ""

    def _set(self) -> Json | None:
        return self._api.get(f"/apis/apps/v1/namespaces/{self._home}/daemonsets/{self._name}")

    def _said(self, pod: Json) -> NodeFabric | None:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        if uid not in self._by_pod:
            try:
                log = self._api.text(f"/api/v1/namespaces/{self._home}/pods/{name}/log", tailLines=_TAIL)
            except (Forbidden, Unavailable):
                raise
            except ResourceError:  # 400: its container waits to start
                return None
            if (fabric := facts_in(log or "")) is None:
                return None
            self._by_pod[uid] = fabric
        return self._by_pod[uid]

    def _pods(self) -> list[Json]:
        """Those that are not on their way out, of this DaemonSet and no earlier one of its name."""
        found = self._api.list(f"/api/v1/namespaces/{self._home}/pods", labelSelector=self._selector)
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp") and self._owns(pod["metadata"])]

    def _owns(self, metadata: Json) -> bool:
        return any(owner.get("uid") == self._uid for owner in metadata.get("ownerReferences") or [])

    def _away(self) -> set[str]:
        """Nodes that take no engine, where nodes may be seen. A DaemonSet has pods for them all the same."""
        try:
            nodes = self._api.list("/api/v1/nodes")
        except Forbidden:
            return set()
        return {node["metadata"]["name"] for node in nodes if not is_open(node)}


def facts_in(log: str) -> NodeFabric | None:
    """What `python -m serving.fabric inspect --format json --stay` has said; None while it has not."""
    for line in reversed(log.splitlines()):
        if line.startswith("{"):
            try:
                return NodeFabric.model_validate_json(line)
            except ValidationError:
                continue
    return None


def is_open(node: Json) -> bool:
    """Whether pods without further tolerations of its state come to a node."""
    conditions = node.get("status", {}).get("conditions") or []
    ready = any(it["type"] == "Ready" and it["status"] == "True" for it in conditions)
    return ready and not node["spec"].get("unschedulable")
