"""Reads what the fabric inspector's pods say in their logs, and makes one set of variables of it for all nodes.

Inputs: kubeconfig, context, namespace, stack, daemonSet, uid and generation (of that DaemonSet: a new one of either
means that there is something new to read), given (variables set by hand), ucx (the engines' version), gate (`required`:
a node without usable fabric ends the update; else it is a warning), timeoutSeconds.
Outputs: environment, supplementalGroups, devices, hardware (those of the devices that are no software), linkGbps, nodes
(names, sorted), findings (a line each), toldBy (the DaemonSet's generation whose pods told it). It changes labels and
annotations of the nodes, where that is allowed, and nothing else.

Pods need no rights for this, and nobody needs more than those on the stack's own namespace: the log is read by who
deploys. After the first time it is read again when a node comes or goes, or after `kubectl rollout restart` of the
DaemonSet, which a preview sees as well.
"""

from dataclasses import dataclass, field
from typing import Any

from infra.provider import node_labels
from infra.provider.inspector_pods import Inspectors
from infra.provider.kubernetes_api import KubernetesApi, Unavailable
from infra.provider.recorded_way_in import end_if_lost
from infra.provider.resource import Interrupted, Operation, PartlyMade, Properties, ResourceError
from serving.fabric.combine import Fabric, combine

_POLL_SECONDS = 1.0
_INPUTS = ("context", "namespace", "stack", "daemonSet", "uid", "generation", "given", "ucx", "gate")
_OUTPUTS = ("environment", "supplementalGroups", "devices", "hardware", "linkGbps", "nodes", "findings", "toldBy")
_SHOWN = ("error", "warning")  # severities; notes are in the output `findings` only


@dataclass
class FabricFacts:
    """Implements infra.provider.resource.Resource."""

    poll_seconds: float = field(default=_POLL_SECONDS)

    def check(self, olds: Properties, news: Properties) -> list[str]:
        return []

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        if olds.get("kubeconfig") != news["kubeconfig"] or any(olds.get(key) != news[key] for key in _INPUTS):
            return True
        if any(key not in olds for key in _OUTPUTS):  # an earlier version of this project asked for less
            return True
        try:
            inspectors = Inspectors(_api(news), news)
            there, generation = inspectors.nodes(), inspectors.generation()
        except ResourceError:  # others say that the cluster cannot be reached
            return False
        # No pods at all: the DaemonSet is gone, which others say too.
        return bool(there) and (there != set(olds.get("nodes") or ()) or generation != olds.get("toldBy"))

    def planned(self, inputs: Properties) -> Properties:
        return {}

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        return f"{inputs['namespace']}/{inputs['daemonSet']}", self._facts(inputs, operation)

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        return outputs, {}

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties:
        try:
            return self._facts(news, operation)
        except Interrupted:
            raise
        except ResourceError as error:  # what was known before stays known, and the next update reads again
            before = {key: olds[key] for key in _OUTPUTS if key in olds}
            raise PartlyMade(str(error), resource_id, news, before) from None

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None:
        try:
            node_labels.remove(_api(outputs), outputs.get("nodes") or (), outputs["stack"])
        except ResourceError as error:  # nodes that are gone, or a cluster: no reason to keep a stack
            end_if_lost(outputs)
            operation.say(f"labels of the nodes' fabric may be left on them: {error}", True)

    def interrupted(self) -> None:
        """A running wait hears of it through its operation."""

    def _facts(self, inputs: Properties, operation: Operation) -> Properties:
        inspectors = self._read(inputs, operation)
        nodes = inspectors.told
        fabric = combine(nodes, inputs["given"], inputs["ucx"])
        if fabric.problems:
            raise ResourceError("\n".join(f"fabric: {line}" for line in fabric.problems))
        if fabric.unusable and inputs["gate"] == "required":
            raise ResourceError("\n".join(f"fabric: {line}" for line in fabric.unusable))
        for line in fabric.unusable:
            operation.warning(f"fabric: {line}")
        for line in (*fabric.notes, *_lines(fabric, _SHOWN)):
            operation.say(f"fabric: {line}", True)
        if note := node_labels.put(_api(inputs), nodes, inputs["ucx"], inputs["stack"]):
            operation.say(note, True)
        return {
            "environment": fabric.environment,
            "supplementalGroups": list(fabric.supplemental_groups),
            "devices": list(fabric.devices),
            "hardware": list(fabric.hardware),
            "linkGbps": fabric.link_gbps or 0,
            "nodes": sorted(nodes),
            "toldBy": inspectors.told_by,
            "findings": [*fabric.unusable, *fabric.notes, *_lines(fabric, ("error", "warning", "note"))],
        }

    def _read(self, inputs: Properties, operation: Operation) -> Inspectors:
        """Wait until every node has told. Raises ResourceError after timeoutSeconds, with who has not, and why."""
        inspectors, shown = Inspectors(_api(inputs), inputs), ""
        while True:
            try:
                waiting = inspectors.look()
            except Unavailable as error:
                waiting = f"the API server to answer again ({error})"
            if not waiting:
                for note in inspectors.notes:
                    operation.say(f"fabric: {note}", True)
                return inspectors
            if operation.elapsed > inputs["timeoutSeconds"]:
                raise ResourceError(
                    f"the fabric of the nodes was not told within {inputs['timeoutSeconds']} s: waiting for {waiting}; "
                    f"`kubectl --namespace {inputs['namespace']} describe pods -l "
                    f"app.kubernetes.io/component={inputs['daemonSet']}` shows more; fabric.discover: false "
                    "does without"
                )
            if waiting != shown:
                operation.say(f"waiting for {waiting}", True)
                shown = waiting
            operation.wait(waiting, self.poll_seconds)


def _api(properties: Properties) -> KubernetesApi:
    return KubernetesApi(properties["kubeconfig"], properties["context"])


def _lines(fabric: Fabric, severities: tuple[str, ...]) -> list[str]:
    """`node-a, node-b: warning: text; fix`: nodes that say the same are named together."""
    nodes: dict[Any, list[str]] = {}
    for node, findings in fabric.findings.items():
        for finding in findings:
            if finding.severity in severities:
                nodes.setdefault(finding, []).append(node)
    return [
        f"{', '.join(names)}: {it.severity}: {it.text}{f'; {it.fix}' if it.fix else ''}" for it, names in nodes.items()
    ]
