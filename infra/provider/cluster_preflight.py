"""Whether a cluster is fit for a stack, found out before anything is put there.

Inputs: kubeconfig, context, contextChosen (false: it is only the kubeconfig's current one), stack, namespace, wait,
timeoutSeconds, nodes (for engine pods), gpuResource, gpusPerNode, engineCpu, engineMemory, rdmaResources {name:
count}, tolerations, nodeSelector, systemNodeSelector, headCpu, headMemory, rayOperator {install, version, namespace,
stack (that owns it, or empty)}, network, attachments, hostDevices {name: device}, nicClusterPolicy (whether this
stack makes one), monitoring, inspectsFabric (whether it runs the fabric inspector), storageClass, resultsSize,
podSecurity (level of the namespace), pullSecret, persistentVolume (whether this stack makes one).
Outputs: none.

Nodes that are there already are checked in every preview. With `wait` they come with the same update: then they are
waited for, and a preview only finds out whether the API answers.
"""

from infra.provider.kubeconfig import unreadable
from infra.provider.kubernetes_api import KubernetesApi, Unavailable
from infra.provider.preflight import claim, kuberay, names, network, nodes, permissions, services
from infra.provider.preflight.gather import gather
from infra.provider.resource import Operation, Properties, ResourceError

_CHECKS = (
    services.version,
    services.namespace,
    names.lacks,
    permissions.lacks,
    nodes.lacks,
    kuberay.lacks,
    network.lacks,
    services.storage,
    claim.lacks,
    services.pull_secret,
    services.monitoring,
)
_NOTES = (nodes.notes, kuberay.notes)
# Each look reads the whole cluster, and nodes join in minutes: what comes is seen soon enough, and nobody is burdened.
_POLL_SECONDS = 5.0


class ClusterPreflight:
    """Implements infra.provider.resource.Resource."""

    def __init__(self) -> None:
        self._notes: list[str] = []  # of the last check, said when the resource is made: a check cannot say anything

    def check(self, olds: Properties, news: Properties) -> list[str]:
        if moved := _moved(olds, news):
            return [moved]
        try:
            api = KubernetesApi(news["kubeconfig"], news["context"])
            if news["wait"]:
                api.get("/version")
                return []
            found, self._notes = _look(api, olds, news)
        except ResourceError as error:
            return [str(error)]
        return found

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        return any(olds.get(key) != value for key, value in news.items())

    def planned(self, inputs: Properties) -> Properties:
        return {}

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        self._settle({}, inputs, operation)
        return f"{inputs['stack']}-preflight", {}

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        return outputs, {}

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties:
        self._settle(olds, news, operation)
        return {}

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None:
        """There is nothing in the cluster."""

    def interrupted(self) -> None:
        """A running wait hears of it through its operation."""

    def _settle(self, olds: Properties, inputs: Properties, operation: Operation) -> None:
        """Wait for what is on its way; what was there already has passed check() a moment ago."""
        if inputs["wait"]:
            self._wait(olds, inputs, operation)
        for note in self._notes:
            operation.say(note, True)

    def _wait(self, olds: Properties, inputs: Properties, operation: Operation) -> None:
        limit = inputs["timeoutSeconds"]
        while True:
            try:
                # Each time: a credential plugin's token may not last as long as a node pool takes.
                api = KubernetesApi(inputs["kubeconfig"], inputs["context"])
                found, self._notes = _look(api, olds, inputs)
            except Unavailable as error:  # a new cluster's API server, or its name, may not be there yet
                found = [str(error)]
            if not found:
                return
            if operation.elapsed > limit:
                raise ResourceError("\n".join([f"the cluster is not ready after {limit} s:", *found]))
            operation.wait(found[0], _POLL_SECONDS)


def _moved(olds: Properties, news: Properties) -> str:
    """`kubectl config use-context` does not move a stack to another cluster: somebody has to say that they want it."""
    before, now = olds.get("context"), news["context"]
    if news["contextChosen"] or not before or before == now:
        return ""
    if not now and unreadable(news["kubeconfig"]):  # said in its place when the file is opened
        return ""
    return (
        f"context: this stack is deployed through context {before!r}, and the current one of {news['kubeconfig']} is "
        f"{now or 'none'!r}; set cluster.context to {before!r}, or to another one to move the stack"
    )


def _look(api: KubernetesApi, olds: Properties, news: Properties) -> tuple[list[str], list[str]]:
    """(what the cluster lacks, what could not be looked at), one line each."""
    before = olds.get("rayOperator", {})
    own_operator = before["namespace"] if before.get("install") == "chart" else ""
    facts = gather(api, news, own_operator)
    news = {**news, "formerNamespace": olds.get("namespace", "")}
    return [line for check in _CHECKS for line in check(news, facts)], [n for note in _NOTES for n in note(news, facts)]
