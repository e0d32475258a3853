"""The RayService of a stack, as the manifest that KubeRay takes."""

import json
from typing import Any

from serving.kubernetes_names import METRICS_PORT, METRICS_SERVICE, RAY_SERVICE, labels
from serving.pods import ADDRESS_VARIABLE, ENGINE, HEAD_OBJECT_STORE, engine_pod, head_pod
from serving.serve_config import serve_config
from serving.stack import Stack
from serving.versions import platform_versions
from serving.yaml_text import yaml_text

Manifest = dict[str, Any]


def ray_cluster_spec(stack: Stack, stack_name: str) -> Manifest:
    """`spec` of a RayCluster: a head without Ray CPUs, and one worker group with one engine pod a replica."""
    replicas = stack.topology_.replicas
    head_store = {"object-store-memory": str(HEAD_OBJECT_STORE)}
    return {
        "rayVersion": platform_versions(stack.platform)["ray"],
        # With hostNetwork Ray's ports are open on the node's addresses; without a token whoever reaches them runs code.
        "authOptions": {"mode": "token"},
        "headGroupSpec": {
            # No CPUs: nothing of the application is placed on the head.
            "rayStartParams": {"num-cpus": "0", "dashboard-host": "0.0.0.0", **head_store},  # noqa: S104
            "template": head_pod(stack, stack_name),
        },
        "workerGroupSpecs": [
            {
                "groupName": ENGINE,
                "replicas": replicas,
                "minReplicas": replicas,
                "maxReplicas": replicas,
                "rayStartParams": _engine_start(stack),
                "template": engine_pod(stack, stack_name),
            }
        ],
    }


def _engine_start(stack: Stack) -> dict[str, str]:
    """Options of `ray start` in an engine pod, words of a shell's command line (KubeRay, pod.go convertParamMap)."""
    options = {
        "object-store-memory": str(stack.platform_.object_store),
        # Ray would take the address from which it reaches the head, in the node's network perhaps the overlay's. Its
        # agent listens there and on 127.0.0.1 (ray 2.55, http_server_agent.py), and the kubelet asks the pod's address.
        "node-ip-address": f"${ADDRESS_VARIABLE}",
        # KubeRay reads it from resources whose names end in `gpu` only (resources.go IsGPUResourceKey).
        "num-gpus": str(stack.profile.gpus_per_node),
    }
    if name := stack.accelerator_type:
        # Ray 2.55 knows an MI325X by the PCI id of the whole device, 0x74a5, and not as a virtual function, 0x74b9
        # (amd_gpu.py): no replica would ever be placed. The node profile knows what its nodes have. Where Ray sees the
        # GPU too, it sets the same resource to the same 1 (resource_and_label_spec.py).
        options["resources"] = f"'{json.dumps({f'accelerator_type:{name}': 1})}'"
    return options


# What is the same in every RayService's spec.
RAY_SERVICE_SPEC: Manifest = {
    "upgradeStrategy": {"type": "None"},
    "excludeHeadPodFromServeSvc": True,  # clients reach the proxies beside the engines, not one more hop
}


def ray_service_metadata(stack_name: str, namespace: str) -> Manifest:
    """Metadata of the RayService."""
    return {"name": RAY_SERVICE, "namespace": namespace, "labels": labels(stack_name, "service")}


def ray_service(stack: Stack, stack_name: str, namespace: str) -> Manifest:
    """The RayService manifest. KubeRay applies edits of serveConfigV2 in place, and of nothing else.

    With `upgradeStrategy: None` it never makes a second cluster, for which a full pool has no nodes; it also ignores
    every later edit of rayClusterConfig, replica counts of worker groups included (rayservice_controller.go
    shouldUpdateCluster, v1.6): such an edit needs a new RayService.
    """
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": ray_service_metadata(stack_name, namespace),
        "spec": {
            **RAY_SERVICE_SPEC,
            "serveConfigV2": yaml_text(serve_config(stack)),
            "rayClusterConfig": ray_cluster_spec(stack, stack_name),
        },
    }


def metrics_service(stack_name: str, namespace: str) -> Manifest:
    """A headless service: its name resolves to every Ray node, ready or not, so that a benchmark scrapes them all."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": METRICS_SERVICE, "namespace": namespace, "labels": labels(stack_name, "metrics")},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"app.kubernetes.io/instance": stack_name, "ray.io/is-ray-node": "yes"},
            "ports": [{"name": "metrics", "port": METRICS_PORT}],
        },
    }
