"""Says, when a stack is destroyed, what it leaves on purpose, and how to remove that too.

Inputs: kubeconfig, context, kubeconfigOf (the stack whose output the kubeconfig's content is; empty for a path), stack,
namespace (empty: the stack has none), kept [{kind, name, apiPath, note}], hint (a sentence for the end), clusterGoes
(whether the same destroy takes the cluster). Output: namespaceWasThere (before the stack, so that it is not the stack's
to delete). It changes nothing in the cluster.

Whoever deploys into the cluster has to depend on this resource: then it is deleted after all of that and before the
cluster, so that it sees what is really left, and what it says comes last.
"""

import shlex
from itertools import groupby

from infra.provider.kubeconfig import is_content
from infra.provider.kubernetes_api import KubernetesApi
from infra.provider.resource import Operation, Properties, ResourceError

_WAY_IN = ("kubeconfig", "context")
_FILE = "FILE"  # what commands call a kubeconfig that is not a file yet
_LEFT = "Left in the cluster on purpose. To remove it as well:"
_NO_MORE = "No longer this stack's, and left in the cluster. To remove it:"
_NOT_SEEN = "What this stack leaves in the cluster was not seen"


class KeptObjects:
    """Implements infra.provider.resource.Resource."""

    def check(self, olds: Properties, news: Properties) -> list[str]:
        return []

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        return any(olds.get(key) != value for key, value in news.items())

    def planned(self, inputs: Properties) -> Properties:
        return {}

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        return f"{inputs['stack']}-kept", {"namespaceWasThere": _namespace_was_there(inputs)}

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        return outputs, {}

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties:
        """What leaves the list is named here for the last time: in another cluster, that is all of it."""
        stays = [] if _another_cluster(olds, news) else [kept["apiPath"] for kept in news["kept"]]
        dropped = [kept for kept in olds["kept"] if kept["apiPath"] not in stays]
        if dropped:
            _say(operation, _objects({**olds, "kept": dropped}, _NO_MORE))
        if any(olds.get(key) != news[key] for key in ("namespace", *_WAY_IN)):
            return {"namespaceWasThere": _namespace_was_there(news)}
        return {"namespaceWasThere": olds.get("namespaceWasThere", False)}

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None:
        lines = _disks(outputs) if outputs["clusterGoes"] else _objects(outputs, _LEFT)
        _say(operation, [*lines, *filter(None, [outputs["hint"]])] if lines else [])

    def interrupted(self) -> None:
        """Nothing is ever under way."""


def _say(operation: Operation, lines: list[str]) -> None:
    if lines:
        operation.say("\n".join(lines), True)


def _api(properties: Properties) -> KubernetesApi:
    return KubernetesApi(*(properties[key] for key in _WAY_IN))


def _another_cluster(olds: Properties, news: Properties) -> bool:
    """Whether the stack moves. By the server's URL, since a kubeconfig also changes when its token is renewed."""
    if all(olds.get(key) == news[key] for key in _WAY_IN):
        return False
    try:
        return _api(olds).server != _api(news).server
    except ResourceError:  # the old file is gone: nothing can be said about what it led to
        return False


def _namespace_was_there(inputs: Properties) -> bool:
    """Whether somebody else made the namespace, or writes to it."""
    if inputs["clusterGoes"] or not inputs["namespace"]:
        return False
    try:
        there = _api(inputs).get(f"/api/v1/namespaces/{inputs['namespace']}")
    except ResourceError:
        return True  # nobody is told to delete what was not seen
    # The namespace of an earlier life of this stack has no other author than Pulumi; labels can be taken over.
    written = ((there or {}).get("metadata", {})).get("managedFields") or []
    return any(not it["manager"].startswith("pulumi") and not it.get("subresource") for it in written)


def _objects(properties: Properties, title: str) -> list[str]:
    """What is there of `kept`, but for somebody else's namespace, in which the stack only lived.

    No failure: a cluster that is gone must not keep a stack from being destroyed.
    """
    was_there = properties.get("namespaceWasThere")
    kept = [one for one in properties["kept"] if not (one["kind"] == "Namespace" and was_there)]
    try:
        api = _api(properties)
        found = [(one, api.get(one["apiPath"])) for one in kept]
    except ResourceError as error:
        return [f"{_NOT_SEEN}: {error}", *_commands(properties, kept)]
    left = [one for one, there in found if there and not there["metadata"].get("deletionTimestamp")]
    return [title, *_commands(properties, left)] if left else []


def _commands(properties: Properties, left: list[Properties]) -> list[str]:
    """kubectl commands, one for objects next to each other that take the same along, which stands behind it."""
    file, context, commands = properties["kubeconfig"], properties["context"], []
    if is_content(file):
        owner, file = properties.get("kubeconfigOf") or properties["stack"], _FILE
        commands.append(f"  pulumi stack output kubeconfig --show-secrets --stack {shlex.quote(owner)} > {_FILE}")
    access = [*(["--kubeconfig", file] if file else []), *(["--context", context] if context else [])]
    for (note, namespaced), objects in groupby(left, key=lambda kept: (kept["note"], _is_namespaced(kept))):
        where = ["--namespace", properties["namespace"]] if namespaced else []
        names = [f"{kept['kind'].lower()}/{kept['name']}" for kept in objects]
        commands.append(f"  {shlex.join(['kubectl', *access, *where, 'delete', *names])}  # {note}")
    return commands


def _is_namespaced(kept: Properties) -> bool:
    """A namespace's own path ends with its name."""
    return "/namespaces/" in kept["apiPath"].rpartition("/")[0]


def _disks(properties: Properties) -> list[str]:
    """The cluster takes its objects along; DigitalOcean keeps the disks behind them, whoever has written to them."""
    try:
        volumes = _api(properties).list("/api/v1/persistentvolumes")
    except ResourceError as error:
        return [f"Which disks stay when the cluster goes was not seen: {error}; `doctl compute volume list` shows them"]
    lines = []
    for spec in (volume["spec"] for volume in volumes):
        if handle := spec.get("csi", {}).get("volumeHandle"):
            claim = spec.get("claimRef") or {}
            whose = f"{claim.get('namespace')}/{claim.get('name')}" if claim else "no claim"
            lines.append(f"  doctl compute volume delete {shlex.quote(handle)}  # {whose}")
    title = "The cluster goes, its disks stay, and are paid for. To remove them as well:"
    return [title, *lines] if lines else []
