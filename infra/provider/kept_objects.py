"""Says, when a stack is destroyed, what it leaves in the cluster on purpose, and how to remove that too.

Inputs: kubeconfig, context, stack, namespace, kept [{kind, name, apiPath, note}], hint (a sentence for the end),
clusterGoes (whether the same destroy takes the cluster). Output: namespaceWasThere (before the stack, so that it is
not the stack's to delete). It changes nothing in the cluster.

Whoever deploys into the cluster has to depend on this resource: then it is deleted after all of that and before the
cluster, so that it sees what is really left, and what it says comes last.
"""

import shlex
from itertools import groupby

from infra.provider.kubernetes_api import KubernetesApi
from infra.provider.resource import Operation, Properties, ResourceError

_DISK_CLAIM = "PersistentVolumeClaim"


class KeptObjects:
    """Implements infra.provider.resource.Resource."""

    def check(self, olds: Properties, news: Properties) -> list[str]:
        return []

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        return any(olds.get(key) != value for key, value in news.items())

    def planned(self, inputs: Properties) -> Properties:
        return {}

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        return f"{inputs['namespace']}-kept", {"namespaceWasThere": _namespace_was_there(inputs)}

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        return outputs, {}

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties:
        if olds.get("namespace") == news["namespace"]:
            return {"namespaceWasThere": olds.get("namespaceWasThere", False)}
        # The stack moves to another namespace, and what it keeps does not.
        self.delete(resource_id, {**olds, "hint": ""}, operation)
        return {"namespaceWasThere": _namespace_was_there(news)}

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None:
        """Never fails: a cluster that is gone must not keep a stack from being destroyed."""
        try:
            lines = _disks(outputs) if outputs["clusterGoes"] else _left(outputs)
        except ResourceError as error:
            maybe = [] if outputs["clusterGoes"] else outputs["kept"]
            lines = [f"What this stack leaves in the cluster was not seen: {error}", *_commands(outputs, maybe)]
        if lines:
            operation.say("\n".join([*lines, *filter(None, [outputs["hint"]])]), True)

    def interrupted(self) -> None:
        """Nothing is ever under way."""


def _namespace_was_there(inputs: Properties) -> bool:
    """Whether somebody else made the namespace, or writes to it."""
    if inputs["clusterGoes"]:
        return False
    try:
        api = KubernetesApi(inputs["kubeconfig"], inputs["context"])
        there = api.get(f"/api/v1/namespaces/{inputs['namespace']}")
    except ResourceError:
        return True  # nobody is told to delete what was not seen
    # The namespace of an earlier life of this stack has no other author than Pulumi; labels can be taken over.
    written = ((there or {}).get("metadata", {})).get("managedFields") or []
    return any(not it["manager"].startswith("pulumi") and not it.get("subresource") for it in written)


def _left(properties: Properties) -> list[str]:
    api = KubernetesApi(properties["kubeconfig"], properties["context"])
    left = []
    for kept in properties["kept"]:
        if kept["kind"] == "Namespace" and properties.get("namespaceWasThere"):
            continue  # somebody's; the stack only lived in it
        there = api.get(kept["apiPath"])
        if there and not there["metadata"].get("deletionTimestamp"):
            left.append(kept)
    return ["Left in the cluster on purpose. To remove it as well:", *_commands(properties, left)] if left else []


def _commands(properties: Properties, left: list[Properties]) -> list[str]:
    """kubectl commands, one for objects next to each other that take the same along, which stands behind it."""
    kubeconfig, context = properties["kubeconfig"], properties["context"]
    is_path = kubeconfig and "\n" not in kubeconfig and not kubeconfig.lstrip().startswith("{")
    access = [*(["--kubeconfig", kubeconfig] if is_path else []), *(["--context", context] if context else [])]
    commands = []
    for (note, namespaced), objects in groupby(left, key=lambda kept: (kept["note"], _is_namespaced(kept))):
        where = ["--namespace", properties["namespace"]] if namespaced else []
        names = [f"{kept['kind'].lower()}/{kept['name']}" for kept in objects]
        commands.append(f"  {shlex.join(['kubectl', *access, *where, 'delete', *names])}  # {note}")
    return commands


def _is_namespaced(kept: Properties) -> bool:
    """A namespace's own path ends with its name."""
    return "/namespaces/" in kept["apiPath"].rpartition("/")[0]


def _disks(properties: Properties) -> list[str]:
    """The cluster takes its objects along; DigitalOcean keeps the disks behind them unless asked otherwise."""
    api = KubernetesApi(properties["kubeconfig"], properties["context"])
    lines = []
    for kept in properties["kept"]:
        claim = api.get(kept["apiPath"]) if kept["kind"] == _DISK_CLAIM else None
        volume = api.get(f"/api/v1/persistentvolumes/{claim['spec'].get('volumeName')}") if claim else None
        if volume and (handle := volume["spec"].get("csi", {}).get("volumeHandle")):
            lines.append(f"  doctl compute volume delete {handle}  # {kept['note']}")
    return (
        ["The cluster goes, the disk of its results stays, and is paid for. To remove it as well:", *lines]
        if lines
        else []
    )
