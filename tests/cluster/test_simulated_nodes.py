"""The simulated cluster's nodes and scheduler: what they offer, and which pods they take."""

from typing import Any

from kubernetes.client import ApiClient

from tests.cluster.objects import pod, running
from tests.cluster.ray_service import FABRIC, TOLERATIONS, container
from tests.cluster.waiting import eventually
from tools.rehearsal import nodes


def test_nodes_are_ready_and_offer_what_doks_offers(core: Any) -> None:
    found = {node.metadata.name: node for node in core.list_node().items}
    assert len(found) == 6
    gpu = found["mi325x-0"]
    assert gpu.metadata.labels["doks.digitalocean.com/gpu-model"] == "mi325x"
    assert [(taint.key, taint.effect) for taint in gpu.spec.taints] == [("amd.com/gpu", "NoSchedule")]
    assert gpu.status.allocatable["amd.com/gpu"] == "8"
    assert {name: gpu.status.allocatable[name] for name in FABRIC} == nodes.FABRIC
    assert "amd.com/gpu" not in found["system-0"].status.allocatable
    addresses = {node.status.addresses[0].address for node in found.values()}
    assert len(addresses) == 6


def test_engine_pod_needs_the_toleration_and_a_free_gpu_node(core: Any, namespace: str) -> None:
    engine = [container("engine", {"amd.com/gpu": 8, **FABRIC})]
    core.create_namespaced_pod(namespace, pod("tolerates", containers=engine, tolerations=TOLERATIONS))
    core.create_namespaced_pod(namespace, pod("does-not", containers=engine))
    assert running(core, namespace, "tolerates").spec.node_name.startswith("mi325x-")

    def refused() -> list[str]:
        conditions = core.read_namespaced_pod("does-not", namespace).status.conditions or []
        return [c.message for c in conditions if c.reason == "Unschedulable"]

    assert "untolerated taint" in eventually(refused, "the scheduler's verdict")[0]


def test_nodes_of_other_clouds(core: Any, api: ApiClient, namespace: str) -> None:
    nodes.add_nodes(api, [nodes.oke_mi300x_node("oke-0", "other"), nodes.tensorwave_node("tensorwave-0", "other")])
    for name, resource in (("oke-0", {"nvidia.com/rdma-vf": 8}), ("tensorwave-0", {"rdma/ib": 1})):
        engine = [container("engine", {"amd.com/gpu": 8, **resource})]
        core.create_namespaced_pod(namespace, pod(name, containers=engine, tolerations=TOLERATIONS))
        assert running(core, namespace, name).spec.node_name == name
    nodes.remove_nodes(api, "other")
    left = {node.metadata.name for node in core.list_node().items}
    assert not left & {"oke-0", "tensorwave-0"}
    eventually(lambda: not core.list_namespaced_pod(namespace).items, "the nodes' pods are gone")
