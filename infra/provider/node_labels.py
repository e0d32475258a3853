"""Puts what is known of nodes' fabric onto their Node objects, and takes it away again (serving/fabric/labels.py).

That is for people and schedulers; nothing of this project reads it. Who may not change nodes deploys all the same.
"""

from collections.abc import Iterable, Mapping

from infra.provider.kubernetes_api import Json, KubernetesApi
from infra.provider.resource import ResourceError
from serving.fabric.choose import choose
from serving.fabric.combine import with_engine_rights
from serving.fabric.labels import PREFIX, node_annotations, node_labels
from serving.fabric.node import NodeFabric

# Whose inspection it was: on nodes that stacks share, one stack must not take away what another has said since.
_INSPECTED_FOR = f"{PREFIX}fabric-inspected-for"


def put(api: KubernetesApi, nodes: Mapping[str, NodeFabric], ucx: str, stack: str) -> str:
    """Label the nodes. Returns why that was not done, in a line, or nothing."""
    try:
        if not api.allowed("", "nodes", "patch"):
            return f"nodes get no labels of their fabric: {api.user} may not patch nodes (nothing else depends on it)"
        for name, seen in nodes.items():
            fabric = with_engine_rights(seen)
            choice = choose(fabric, ucx)
            annotations = {**node_annotations(fabric, choice), _INSPECTED_FOR: stack}
            metadata = {"labels": node_labels(fabric, choice), "annotations": annotations}
            api.patch(_path(name), {"metadata": metadata})
    except ResourceError as error:
        return f"nodes get no labels of their fabric: {error}"
    return ""


def remove(api: KubernetesApi, names: Iterable[str], stack: str) -> None:
    """Take away what this stack put there, as far as that is allowed. Raises ResourceError."""
    names = list(names)
    if not names or not api.allowed("", "nodes", "patch") or not api.allowed("", "nodes", "get"):
        return
    for name in names:
        metadata: Json = (api.get(_path(name)) or {}).get("metadata", {})
        if (metadata.get("annotations") or {}).get(_INSPECTED_FOR) != stack:
            continue
        ours = {kind: _cleared(metadata.get(kind) or {}) for kind in ("labels", "annotations")}
        api.patch(_path(name), {"metadata": ours})


def _cleared(values: Json) -> Json:
    known = {*node_labels(NodeFabric(), choose(NodeFabric())), *node_annotations(NodeFabric(), choose(NodeFabric()))}
    return {key: None for key in values if key in known or key == _INSPECTED_FOR}


def _path(node: str) -> str:
    return f"/api/v1/nodes/{node}"
