"""The RayService of a stack, as the manifest that KubeRay takes."""

from typing import Any

from serving.kubernetes_names import METRICS_PORT, METRICS_SERVICE, RAY_SERVICE, labels
from serving.pods import ENGINE, HEAD, HEAD_OBJECT_STORE, engine_pod, head_pod
from serving.serve_config import serve_config
from serving.stack import Stack
from serving.versions import platform_versions
from serving.yaml_text import yaml_text

Manifest = dict[str, Any]


def ray_cluster_spec(stack: Stack, stack_name: str) -> Manifest:
    """`spec` of a RayCluster: a head without Ray CPUs, and one worker group with one engine pod a replica."""
    replicas = stack.topology_.replicas
    store = {"object-store-memory": str(stack.platform_.object_store)}
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
                "rayStartParams": store,
                "template": engine_pod(stack, stack_name),
            }
        ],
    }


def ray_service(stack: Stack, stack_name: str, namespace: str) -> Manifest:
    """The RayService manifest. KubeRay applies edits of serveConfigV2 in place, and of nothing else.

    With `upgradeStrategy: None` it never makes a second cluster, for which a full pool has no nodes; it also ignores
    every later edit of rayClusterConfig, replica counts of worker groups included (rayservice_controller.go
    shouldUpdateCluster, v1.6): such an edit needs a new RayService.
    """
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": RAY_SERVICE, "namespace": namespace, "labels": labels(stack_name, "service")},
        "spec": {
            "serveConfigV2": yaml_text(serve_config(stack)),
            "upgradeStrategy": {"type": "None"},
            "excludeHeadPodFromServeSvc": True,  # clients reach the proxies beside the engines, not one more hop
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


def pod_selector(stack_name: str) -> dict[str, str]:
    """Label selectors of a stack's Ray pods: role -> selector."""
    name = f"app.kubernetes.io/instance={stack_name}"
    return {role: f"{name},app.kubernetes.io/component={role}" for role in (HEAD, ENGINE)}
