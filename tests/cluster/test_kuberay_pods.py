"""What the real KubeRay makes of a stack's manifest: the pods that a kubelet would start."""

import json
import shlex
from typing import Any

import pytest

from infra.provider.kubernetes_api import KubernetesApi
from serving.ray_cluster import ray_service
from serving.stack import parse_stack
from tests.cluster.deployment import IMAGES, pods
from tests.cluster.waiting import eventually
from tools.rehearsal.cluster import SimulatedCluster

Json = dict[str, Any]
SETTINGS = {
    "model": "qwen3-235b-a22b-fp8",
    "topology": "1p1d",
    "scenario": "qwen-16k-1k",
    "cluster": {"provider": "existing", "nodes": {"environment": {"UCX_NET_DEVICES": "mlx5_0:1"}}},
    "images": IMAGES,
}


@pytest.fixture
def made(cluster: SimulatedCluster, namespace: str) -> dict[str, Json]:
    """Role -> spec of such a pod."""
    api = KubernetesApi(str(cluster.outside_kubeconfig))
    manifest = ray_service(parse_stack(SETTINGS), "pd-test", namespace)
    api.post(f"/apis/ray.io/v1/namespaces/{namespace}/rayservices", manifest)

    def there() -> bool:
        return len(pods(api, namespace, "engine")) == 2 and len(pods(api, namespace, "head")) == 1

    eventually(there, "KubeRay has made the pods")
    return {role: pods(api, namespace, role)[0]["spec"] for role in ("engine", "head")}


def container(pod: Json) -> Json:
    return pod["containers"][0]


def test_ray_starts_with_what_the_node_profile_says(made: dict[str, Json]) -> None:
    (command,) = container(made["engine"])["args"]
    assert "--node-ip-address=$POD_IP" in command  # bash fills it in
    words = [word.partition("=") for word in shlex.split(command)]
    options = {name: value for name, _, value in words}
    assert options["--num-gpus"] == "8"
    assert json.loads(options["--resources"]) == {"accelerator_type:AMD-Instinct-MI325X-OAM": 1}
    assert container(made["engine"])["command"][0] == "/bin/bash"
    (head,) = container(made["head"])["args"]
    assert "--node-ip-address" not in head


def test_variables_and_rights_survive(made: dict[str, Json]) -> None:
    engine = container(made["engine"])
    variables = [variable["name"] for variable in engine["env"]]
    assert len(set(variables)) == len(variables)
    assert {"POD_IP", "UCX_NET_DEVICES", "UCX_TLS"} <= set(variables)
    assert engine["securityContext"]["runAsUser"] == 0


@pytest.mark.parametrize("role", ["engine", "head"])
def test_what_kills_a_pod_asks_rays_agent_for_ten_minutes(made: dict[str, Json], role: str) -> None:
    """KubeRay's own: a load of any length, during which that agent answers, kills nothing."""
    liveness = container(made[role])["livenessProbe"]
    assert liveness["httpGet"].items() >= {"path": "/api/healthz", "port": 52365}.items()
    assert liveness["periodSeconds"] * liveness["failureThreshold"] == 600
    assert "exec" not in container(made[role])["readinessProbe"], "needs wget in the image"
