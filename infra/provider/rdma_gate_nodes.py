"""Between which nodes the RDMA gate runs: those that engines may get, but for those that somebody else's pods hold."""

from infra.provider.inspector_pods import is_open
from infra.provider.kubernetes_api import Forbidden, Json, KubernetesApi
from infra.provider.preflight.quantities import pod_requests
from infra.provider.resource import Properties, ResourceError

_NAME = ("app.kubernetes.io/name", "pd-mi325x")
_RUNNING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


def gate_nodes(api: KubernetesApi, inputs: Properties) -> tuple[list[str], dict[str, str]]:
    """(names, those that are left out -> the pod that holds them). Raises ResourceError when there are not two."""
    known = list(inputs["nodes"]) or _selected(api, inputs)
    taken = _taken(api, inputs)
    nodes = [name for name in known if name not in taken]
    if len(nodes) < max(2, inputs["replicas"]):
        held = "; ".join(f"{name} is held by {taken[name]}" for name in known if name in taken)
        raise ResourceError(
            f"RDMA gate: needs {inputs['replicas']} nodes with free {inputs['gpuResource']}, there are {len(nodes)}"
            f" ({', '.join(nodes) or 'none'}){f': {held}' if held else ''}; free or add nodes"
        )
    return nodes, {name: taken[name] for name in known if name in taken}


def _selected(api: KubernetesApi, inputs: Properties) -> list[str]:
    """Where nothing inspected the nodes: those with the engines' labels that are Ready and open."""
    try:
        nodes = api.list("/api/v1/nodes", **_labels(inputs["nodeSelector"]))
    except Forbidden as error:
        raise ResourceError(f"RDMA gate: which nodes there are is not known: {error}") from None
    return sorted(node["metadata"]["name"] for node in nodes if is_open(node))


def _labels(selector: dict[str, str]) -> dict[str, str]:
    return {"labelSelector": ",".join(f"{key}={value}" for key, value in selector.items())} if selector else {}


def _taken(api: KubernetesApi, inputs: Properties) -> dict[str, str]:
    """Node -> namespace/name of a pod that holds GPUs there. Empty where pods of others may not be seen."""
    try:
        pods = api.list("/api/v1/pods", fieldSelector=_RUNNING)
    except Forbidden:
        return {}
    return {
        pod["spec"]["nodeName"]: f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in pods
        if pod_requests(pod).get(inputs["gpuResource"]) and not _own(pod["metadata"], inputs)
    }


def _own(metadata: Json, inputs: Properties) -> bool:
    """This stack's engines make way, and are on their way out when the gate runs; in another namespace as well."""
    labels = metadata.get("labels") or {}
    return labels.get("app.kubernetes.io/instance") == inputs["stack"] and labels.get(_NAME[0]) == _NAME[1]
