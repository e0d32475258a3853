"""Where the pods of a stack landed, read from the API, and whether that is where they belong."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from serving.kubernetes_names import BENCHMARK
from serving.pods import ENGINE, HEAD
from serving.stack import Stack

COMPONENT = "app.kubernetes.io/component"


@dataclass(frozen=True)
class Landing:
    """One pod. gpus, rdma: what it asks for, and so has; node_gpus, node_rdma: what its node has, by resource name."""

    pod: str
    role: str
    node: str
    why: str
    gpus: int
    rdma: dict[str, int]
    node_gpus: int
    node_rdma: dict[str, int]

    @property
    def on_gpu_node(self) -> bool:
        return self.node_gpus > 0


def landing(pod: dict[str, Any], nodes: dict[str, dict[str, Any]], gpu_resource: str) -> Landing:
    """`pod` and `nodes` (by name) are objects of the Kubernetes API."""
    asked: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        asked.update(_devices(container.get("resources", {}).get("limits", {})))
    node = pod["spec"].get("nodeName", "")
    offered = _devices(nodes[node]["status"]["allocatable"]) if node in nodes else {}
    scheduled = next((c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"), {})
    return Landing(
        pod=pod["metadata"]["name"],
        role=pod["metadata"].get("labels", {}).get(COMPONENT, "?"),
        node=node,
        why=scheduled.get("message") or scheduled.get("reason") or "not looked at by the scheduler",
        gpus=asked.get(gpu_resource, 0),
        rdma={name: count for name, count in asked.items() if name != gpu_resource},
        node_gpus=offered.get(gpu_resource, 0),
        node_rdma={name: count for name, count in offered.items() if name != gpu_resource},
    )


def _devices(resources: dict[str, str]) -> dict[str, int]:
    """Resources of device plugins: those whose name has a domain."""
    return {name: int(count) for name, count in resources.items() if "/" in name}


def faults(found: list[Landing], stack: Stack) -> list[str]:
    """What is not as it must be, a line each."""
    profile = stack.profile
    engines = [it for it in found if it.role == ENGINE]
    wrong = [f"{it.pod} is on no node: {it.why}" for it in found if not it.node]
    if len(engines) != stack.topology_.replicas:
        wrong.append(f"{len(engines)} engine pods, {stack.topology_.replicas} replicas")
    if profile.gpus_per_node and (
        shared := [n for n, k in Counter(e.node for e in engines if e.node).items() if k > 1]
    ):
        wrong.append(f"more than one engine pod on {', '.join(sorted(shared))}")
    for it in engines:
        if it.gpus != profile.gpus_per_node:
            wrong.append(f"{it.pod} has {it.gpus} GPUs, not {profile.gpus_per_node}")
        if it.rdma != profile.rdma_resources:
            wrong.append(f"{it.pod} has RDMA devices {it.rdma}, not {profile.rdma_resources}")
    for role in (HEAD, BENCHMARK):
        pods = [it for it in found if it.role == role]
        if len(pods) != 1:
            wrong.append(f"{len(pods)} {role} pods, not 1")
        wrong += [f"{it.pod} ({role}) is on GPU node {it.node}" for it in pods if it.on_gpu_node]
    return wrong
