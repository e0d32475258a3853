"""A stack as the checks get it, what they have seen of a cluster, and a KubeRay operator in one."""

from typing import Any

from infra.provider.preflight.facts import Facts
from serving.versions import versions

Json = dict[str, Any]
PINNED = versions()["kuberay"]["version"]
INPUTS: Json = {
    "stack": "pd-2p1d",
    "namespace": "space",
    "rayOperator": {"install": "preinstalled", "version": PINNED, "namespace": "kuberay", "stack": ""},
    "network": "host",
    "attachments": [],
    "hostDevices": {},
    "nicClusterPolicy": False,
    "monitoring": "none",
    "inspectsFabric": False,
    "storageClass": "",
    "resultsSize": "20Gi",
    "podSecurity": "privileged",
    "pullSecret": "",
    "persistentVolume": False,
}
CHART = {"rayOperator": {**INPUTS["rayOperator"], "install": "chart"}}
MULTUS = {"network": "multus", "attachments": [], "hostDevices": {"fabric0": "eth1"}}


def facts(**changes: Any) -> Facts:
    return Facts(**{"user": "me", "version": {"major": "1", "minor": "34"}, **changes})


def operator(image: str = f"quay.io/kuberay/operator:v{PINNED}", where: str = "ray-system", *args: str) -> Json:
    container = {"image": image, "args": list(args)}
    return {"metadata": {"namespace": where}, "spec": {"template": {"spec": {"containers": [container]}}}}
