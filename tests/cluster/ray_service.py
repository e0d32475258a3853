"""A small RayService with token authentication and engine workers that fill a GPU node each."""

from typing import Any

import yaml
from kubernetes import client

from serving.versions import platform_versions

FABRIC = {f"rdma/fabric{nic}": 1 for nic in range(8)}
TOLERATIONS = [{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
_ENGINE = {"accelerator_type": "AMD-Instinct-MI325X-OAM", "engine_kwargs": {"tensor_parallel_size": 8}}


def application(replicas: int = 1) -> dict[str, Any]:
    return {
        "name": "llm",
        "route_prefix": "/",
        "import_path": "ray.serve.llm:build_openai_app",
        "args": {"llm_configs": [_ENGINE]},
        "deployments": [{"name": "LLMServer:model", "num_replicas": replicas}],
    }


def container(name: str, amounts: dict[str, Any]) -> dict[str, Any]:
    limits = {resource: str(amount) for resource, amount in amounts.items()}
    return {"name": name, "image": "simulated", "resources": {"limits": limits, "requests": limits}}


def ray_service(name: str, serve_config: str, workers: int = 1) -> dict[str, Any]:
    worker = {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "tolerations": TOLERATIONS,
        "containers": [container("ray-worker", {"amd.com/gpu": 8, "cpu": "132", "memory": "1062Gi", **FABRIC})],
    }
    group = {"groupName": "engines", "replicas": workers, "minReplicas": workers, "maxReplicas": workers}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": name},
        "spec": {
            "serveConfigV2": serve_config,
            "upgradeStrategy": {"type": "None"},
            "rayClusterConfig": {
                "rayVersion": platform_versions("rocm")["ray"],
                "authOptions": {"mode": "token"},
                "headGroupSpec": {
                    "rayStartParams": {"num-cpus": "0"},
                    "template": {"spec": {"containers": [container("ray-head", {"cpu": "2", "memory": "4Gi"})]}},
                },
                "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": {"spec": worker}}],
            },
        },
    }


class RayService:
    """The RayService `serve` of a namespace, through the API server."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self.name = "serve"
        self._custom: Any = client.CustomObjectsApi(api)
        self._place = ("ray.io", "v1", namespace, "rayservices")

    def create(self, replicas: int = 1, workers: int = 1) -> None:
        serve_config = yaml.safe_dump({"applications": [application(replicas)]})
        self._custom.create_namespaced_custom_object(*self._place, ray_service(self.name, serve_config, workers))

    def ready(self) -> bool:
        conditions = self._status().get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def application(self) -> dict[str, Any]:
        """What KubeRay has read of the application `llm`, on the Ray cluster that it uses or prepares."""
        status = self._status()
        for key in ("activeServiceStatus", "pendingServiceStatus"):
            if known := status.get(key, {}).get("applicationStatuses"):
                return known["llm"]
        return {}

    def _status(self) -> dict[str, Any]:
        return self._custom.get_namespaced_custom_object(*self._place, self.name).get("status", {})
