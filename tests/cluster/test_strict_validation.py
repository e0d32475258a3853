"""Every manifest of every kind of stack, held against the API server's own schemas and KubeRay's: nothing unknown.

Pulumi's provider asks the API server to warn about unknown fields and goes on: a misspelt one would be dropped, and the
stack come up without it.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from pulumi.runtime import rpc

from infra.kubernetes_program import deploy_on_kubernetes
from infra.provider.kubernetes_api import KubernetesApi
from infra.provider.resource import ResourceError
from serving.node_profiles import PROFILES
from serving.rdma_gate.gate_run import SideName
from serving.rdma_gate.jobs import gate_job
from serving.rdma_gate.pairs import Pair
from serving.stack import Stack, parse_stack
from serving.stack_files import load_stack, stack_names
from tests.cluster.deployment import IMAGES
from tests.unit.infra.registrations import program_registers
from tools.rehearsal.cluster import SimulatedCluster

# Kinds of operators that the simulated cluster does not have; tests of their own hold them against stand-in schemas.
ELSEWHERE = {"NetworkAttachmentDefinition", "NicClusterPolicy", "PodMonitor", "ServiceMonitor"}
HOST_DEVICES = {f"roce-net-fabric{n}": f"fabric{n}" for n in range(8)}
EXISTING = {"provider": "existing"}
REVISION = "a" * 40
BASE = {"model": "qwen3-235b-a22b-fp8", "topology": "2p1d", "scenario": "qwen-16k-1k", "images": IMAGES}
BASE |= {"cluster": EXISTING, "rayOperator": {"install": "preinstalled"}}
CPU = {"model": "rehearsal-qwen3-moe", "platform": "cpu", "weights": {"mode": "local", "path": "/models/rehearsal"}}


def shipped(name: str) -> dict[str, Any]:
    """A shipped stack's settings, on a cluster that is there."""
    return load_stack(name).model_dump(by_alias=True, exclude_unset=True) | {
        key: BASE[key] for key in ("images", "cluster", "rayOperator")
    }


CASES: dict[str, dict[str, Any]] = {
    **{name: shipped(name) for name in stack_names() if load_stack(name).target == "kubernetes"},
    **{
        f"profile {profile}": BASE
        | (CPU if profile == "kind" else {})
        | {"cluster": EXISTING | {"profile": profile}, "fabric": {"gate": "off"}}
        for profile in PROFILES
    },
    "multus": BASE
    | {
        "cluster": EXISTING
        | {"nodes": {"network": "multus", "hostDevices": HOST_DEVICES, "environment": {"UCX_NET_DEVICES": "mlx5_0:1"}}},
        "fabric": {"floorGbps": 190},
    },
    "render group": BASE | {"cluster": EXISTING | {"nodes": {"renderGroup": 991, "storageClass": "fast"}}},
    "variables": BASE | {"cluster": EXISTING | {"nodes": {"environment": {"UCX_IB_GID_INDEX": 3, "UCX_TLS": "rc"}}}},
    "cuda": BASE | {"platform": "cuda", "cluster": EXISTING | {"nodes": {"gpuResource": "nvidia.com/gpu"}}},
    "pull secret": BASE | {"images": {**IMAGES, "pullSecret": "registry"}},
    "weights from nfs": BASE
    | {"weights": {"mode": "nfs", "revision": REVISION, "nfs": {"server": "10.0.0.2", "path": "/w"}}},
    "weights from hub": BASE | {"weights": {"mode": "hub", "revision": REVISION}, "huggingFaceToken": "a-token"},
    "weights on the node": BASE | {"weights": {"mode": "local", "path": "/mnt/weights"}},
    "annotations": BASE | {"monitoring": "annotations"},
    "prometheus": BASE | {"monitoring": "prometheus-operator"},
}


@pytest.fixture(scope="module")
def plural(cluster: SimulatedCluster) -> Callable[[str, str], tuple[str, bool] | None]:
    """(apiVersion, kind) -> (plural, whether namespaced); None where the API server does not serve it."""
    api = KubernetesApi(str(cluster.outside_kubeconfig))
    known: dict[str, list[dict[str, Any]]] = {}

    def find(version: str, kind: str) -> tuple[str, bool] | None:
        path = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        known.setdefault(version, (api.get(path) or {}).get("resources", []))
        found = [r for r in known[version] if r["kind"] == kind and "/" not in r["name"]]
        return (found[0]["name"], found[0]["namespaced"]) if found else None

    return find


def manifests(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """What the program hands to Pulumi's Kubernetes provider, as manifests, and the Jobs that the RDMA gate makes."""
    stack: Stack = parse_stack(settings)
    found = program_registers(lambda: deploy_on_kubernetes(stack))
    kubernetes = [plain(it.inputs) for it in found if it.type.startswith("kubernetes:") and "apiVersion" in it.inputs]
    assert {"RayService", "CronJob", "Namespace", "Service"} <= {it["kind"] for it in kubernetes}
    template = next(plain(it.inputs["template"]) for it in found if it.type == "pd:index:RdmaGate")
    sides: tuple[SideName, ...] = ("client", "server") if template else ()
    pair, nics = Pair(0, "mi325x-0", "mi325x-1"), ["mlx5_0:1", "mlx5_1:1"]
    return [*kubernetes, *(gate_job(template, pair, side, nics, "rocm", "10.0.0.4") for side in sides)]


def plain(value: Any) -> Any:
    """As Pulumi's provider sends it: secrets opened, and the wire's doubles as the whole numbers they were."""
    value = rpc.unwrap_rpc_secret(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def post(api: KubernetesApi, manifest: dict[str, Any], namespace: str, kind: tuple[str, bool]) -> None:
    """The API server's strict opinion; nothing is made."""
    body, (name, namespaced) = deepcopy(manifest), kind
    if namespaced:
        body["metadata"]["namespace"] = namespace
    version = manifest["apiVersion"]
    path = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    path += f"/namespaces/{namespace}/{name}" if namespaced else f"/{name}"
    api.post(path, body, dryRun="All", fieldValidation="Strict")


@pytest.mark.parametrize("case", CASES)
def test_nothing_unknown(case: str, cluster: SimulatedCluster, plural: Any, namespace: str) -> None:
    api = KubernetesApi(str(cluster.outside_kubeconfig))
    for manifest in manifests(CASES[case]):
        kind = plural(manifest["apiVersion"], manifest["kind"])
        assert kind or manifest["kind"] in ELSEWHERE, manifest["kind"]
        if kind:
            post(api, manifest, namespace, kind)


def test_a_planted_typo_is_caught(cluster: SimulatedCluster, plural: Any, namespace: str) -> None:
    api = KubernetesApi(str(cluster.outside_kubeconfig))
    service = next(it for it in manifests(BASE) if it["kind"] == "RayService")
    group = service["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
    group["template"]["spec"]["containers"][0]["livenessProb"] = {}
    with pytest.raises(ResourceError, match=r'unknown field "spec\.rayClusterConfig\..*livenessProb"'):
        post(api, service, namespace, plural("ray.io/v1", "RayService"))
    inspector = next(it for it in manifests(BASE) if it["kind"] == "DaemonSet")
    inspector["spec"]["template"]["spec"]["hostNetwerk"] = True
    with pytest.raises(ResourceError, match=r'unknown field "spec\.template\.spec\.hostNetwerk"'):
        post(api, inspector, namespace, plural("apps/v1", "DaemonSet"))
    job = next(it for it in manifests(BASE) if it["kind"] == "Job")
    job["spec"]["activeDeadline"] = 1
    with pytest.raises(ResourceError, match=r'unknown field "spec\.activeDeadline"'):
        post(api, job, namespace, plural("batch/v1", "Job"))
    cronjob = next(it for it in manifests(BASE) if it["kind"] == "CronJob")
    cronjob["spec"]["jobTemplate"]["spec"]["backofLimit"] = 0
    with pytest.raises(ResourceError, match=r'unknown field "spec\.jobTemplate\.spec\.backofLimit"'):
        post(api, cronjob, namespace, plural("batch/v1", "CronJob"))
