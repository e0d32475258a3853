"""A topology stack on the simulated cluster, and looks at what it made."""

from typing import Any

from infra.provider.kubernetes_api import KubernetesApi
from serving.kubernetes_names import RAY_SERVICE
from tests.cluster.conftest import ClusterShell
from tools.rehearsal.stack import simulated_image

# Kinds that come and go by themselves, or that Kubernetes keeps in every namespace.
_TRANSIENT = ("events", "leases", "endpoints", "endpointslices", "controllerrevisions")
_IN_EVERY_NAMESPACE = {("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")}
IMAGES = {name: simulated_image(name) for name in ("engine", "benchmark")}
# What test_rdma_gate.py is about, and takes as long as the rest of a deployment.
NO_FABRIC = {"gate": "off", "discover": False}


def api_of(shell: ClusterShell) -> KubernetesApi:
    """The administrator's API, from this process."""
    return KubernetesApi(str(shell.cluster.outside_kubeconfig))


def write_stack(shell: ClusterShell, name: str, shipped: str = "pd-2p1d", **config: Any) -> None:
    """A stack file as `shipped`, on the simulated cluster, with other keys on top; selected in the shell."""
    base: dict[str, Any] = {
        "cluster": {"provider": "existing", "kubeconfig": str(shell.cluster.kubeconfig)},
        "images": IMAGES,
        "rayOperator": {"install": "preinstalled"},
        "readyTimeoutSeconds": 120,
        "fabric": NO_FABRIC,
    }
    source = shell.checkout / f"Pulumi.{shipped}.yaml"
    if not (target := shell.checkout / f"Pulumi.{name}.yaml").exists():
        target.write_text(source.read_text())
        config = {**base, **config}
    shell.write_stack(name, **config)
    selected = shell.run(f"pulumi stack select --create {name}")
    assert selected.ok, selected.text


def ray_service(api: KubernetesApi, namespace: str) -> dict[str, Any]:
    found = api.get(f"/apis/ray.io/v1/namespaces/{namespace}/rayservices/{RAY_SERVICE}")
    assert found is not None
    return found


def pods(api: KubernetesApi, namespace: str, component: str) -> list[dict[str, Any]]:
    """Pods of one component that are not on their way out."""
    selector = f"app.kubernetes.io/component={component}"
    found = api.list(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def uids(objects: list[dict[str, Any]]) -> set[str]:
    return {it["metadata"]["uid"] for it in objects}


def everything(api: KubernetesApi) -> set[tuple[str, str, str]]:
    """(resource, namespace, name) of every object of every kind that the API server lists, transient ones left out."""
    groups = ["/api/v1"]
    for group in (api.get("/apis") or {}).get("groups", []):
        groups.append(f"/apis/{group['preferredVersion']['groupVersion']}")
    seen: set[tuple[str, str, str]] = set()
    for path in groups:
        for resource in (api.get(path) or {}).get("resources", []):
            name = resource["name"]
            if "/" in name or "list" not in resource["verbs"] or name in _TRANSIENT:
                continue
            for item in api.list(f"{path}/{name}"):
                metadata = item["metadata"]
                if (name, metadata["name"]) not in _IN_EVERY_NAMESPACE:
                    seen.add((name, metadata.get("namespace", ""), metadata["name"]))
    return seen
