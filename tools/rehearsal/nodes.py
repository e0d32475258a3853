"""Nodes as the clouds present them. Simulated: kwok keeps them Ready, no kubelet and no machine is behind one.

A node is an ordinary Node object as a dict; names are the caller's. Sizes are capacity and allocatable alike.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubernetes import client

from tools.rehearsal.namespace import ITEM, NODE_RANGE
from tools.toolchain.errors import ToolchainError

POOL_LABEL = "doks.digitalocean.com/node-pool"
GPUS = 8
# The shared RDMA device plugin offers each NIC many times over: it is not exclusive. 63 is rdmaHcaMax in NVIDIA's
# examples of a NicClusterPolicy, and in the one that infra/fabric.py makes.
FABRIC_SHARES = 63
FABRIC = {f"rdma/fabric{nic}": str(FABRIC_SHARES) for nic in range(8)}
# MI325X droplet of 8 GPUs: 160 vCPU, about 1,280 GiB, boot disk of 720 GiB (DigitalOcean's size page).
_MI325X_SIZE = {"cpu": "160", "memory": "1280Gi", "ephemeral-storage": "720Gi", "amd.com/gpu": str(GPUS)}
_PODS = "110"
_GPU_TAINT = {"key": "amd.com/gpu", "effect": "NoSchedule"}


def gpu_node(name: str, pool: str = "mi325x") -> dict[str, Any]:
    """DOKS, MI325X fabric pool: its labels, its taint, 8 GPUs and `rdma/fabric0` to `rdma/fabric7`."""
    labels = {"doks.digitalocean.com/gpu-brand": "amd", "doks.digitalocean.com/gpu-model": "mi325x", POOL_LABEL: pool}
    return _node(name, labels, {**_MI325X_SIZE, **FABRIC}, [_GPU_TAINT])


def cpu_node(name: str, pool: str = "system", cpu: int = 8, memory_gib: int = 13) -> dict[str, Any]:
    """DOKS, a pool without GPUs: by default s-8vcpu-16gb-amd, less a guess at what the system keeps of its memory."""
    size = {"cpu": str(cpu), "memory": f"{memory_gib}Gi", "ephemeral-storage": "160Gi"}
    return _node(name, {POOL_LABEL: pool}, size, [])


def oke_mi300x_node(name: str, pool: str = "mi300x") -> dict[str, Any]:
    """Oracle's BM.GPU.MI300X.8: a taint with a value, SR-IOV functions as `nvidia.com/rdma-vf` (oci-hpc-oke)."""
    labels = {"node.kubernetes.io/instance-type": "BM.GPU.MI300X.8", POOL_LABEL: pool}
    size = {**_MI325X_SIZE, "cpu": "112", "memory": "2048Gi", "nvidia.com/rdma-vf": "8"}
    return _node(name, labels, size, [{**_GPU_TAINT, "value": "present"}])


def connectx_node(name: str, pool: str = "connectx") -> dict[str, Any]:
    """Own cluster with NVIDIA's network operator: node feature labels, and the shared plugin's resources per NIC."""
    labels = {
        "feature.node.kubernetes.io/amd-gpu": "true",
        "feature.node.kubernetes.io/pci-15b3.present": "true",
        POOL_LABEL: pool,
    }
    return _node(name, labels, {**_MI325X_SIZE, **FABRIC}, [_GPU_TAINT])


def tensorwave_node(name: str, pool: str = "tensorwave") -> dict[str, Any]:
    """TensorWave as llm-d's overlay addresses it: one resource `rdma/ib` stands for all NICs."""
    labels = {"feature.node.kubernetes.io/amd-gpu": "true", POOL_LABEL: pool}
    return _node(name, labels, {**_MI325X_SIZE, "rdma/ib": str(FABRIC_SHARES)}, [_GPU_TAINT])


def add_nodes(api: client.ApiClient, nodes: Iterable[Mapping[str, Any]], ready_within_s: float = 60) -> None:
    """Make the nodes and wait until each is Ready and schedulable (no not-ready taint).

    Raises ToolchainError when one is not in time; 0 seconds means not to wait.
    """
    core: Any = client.CoreV1Api(api)
    names = {core.create_node(dict(node)).metadata.name for node in nodes}
    deadline = time.monotonic() + ready_within_s
    while ready_within_s and (waiting := names - _ready(core)):
        if time.monotonic() > deadline:
            raise ToolchainError(ITEM, f"nodes not Ready: {', '.join(sorted(waiting))}", "see kwok.log of the cluster")
        time.sleep(0.1)


def remove_nodes(api: client.ApiClient, pool: str) -> None:
    """Take a pool's nodes away as a cloud does when the pool is deleted: the pods on them end with them."""
    core: Any = client.CoreV1Api(api)
    remove(api, [node.metadata.name for node in core.list_node(label_selector=f"{POOL_LABEL}={pool}").items])


def remove(api: client.ApiClient, names: Iterable[str]) -> None:
    """The same of single nodes. What somebody else has removed meanwhile is none of its business."""
    core: Any = client.CoreV1Api(api)
    for name in names:
        _ignore_missing(core.delete_node, name)
        for pod in core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={name}").items:
            metadata = pod.metadata
            _ignore_missing(core.delete_namespaced_pod, metadata.name, metadata.namespace, grace_period_seconds=0)


# Of the profiles in serving/node_profiles.yaml; a node of kind has no devices to be placed by.
OF_PROFILE: dict[str, Callable[[str], dict[str, Any]]] = {
    "doks": gpu_node,
    "oke-mi300x": oke_mi300x_node,
    "nvidia-network-operator": connectx_node,
    "tensorwave": tensorwave_node,
}


def _node(name: str, labels: dict[str, str], size: dict[str, str], taints: list[dict[str, str]]) -> dict[str, Any]:
    size = {**size, "pods": _PODS}
    well_known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**well_known, **labels},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": taints},
        "status": {
            "capacity": size,
            "allocatable": size,
            "addresses": [
                {"type": "InternalIP", "address": address_of(name)},
                {"type": "Hostname", "address": name},
            ],
        },
    }


def address_of(name: str) -> str:
    """An address of its own in NODE_RANGE, so that hostNetwork pods of two nodes differ. The same for the same name.

    From 62,000 addresses: two of ten nodes meet once in 1,400 clusters, and then only share a pod address.
    """
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % (244 * 254)
    prefix = NODE_RANGE.removesuffix(".0.0/16")
    return f"{prefix}.{number // 254 + 10}.{number % 254 + 1}"


def _ready(core: Any) -> set[str]:
    return {
        node.metadata.name
        for node in core.list_node().items
        if any(c.type == "Ready" and c.status == "True" for c in node.status.conditions or [])
        and not any(taint.key.startswith("node.kubernetes.io/") for taint in node.spec.taints or [])
    }


def _ignore_missing(delete: Callable[..., Any], *names: str, **options: Any) -> None:
    try:
        delete(*names, **options)
    except client.ApiException as error:
        if error.status != 404:
            raise
