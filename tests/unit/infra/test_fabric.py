"""Which objects make RDMA NICs reachable, for each network mode."""

import json
from typing import Any

import pytest
from registrations import NAMES, Registration, registered, stack

from infra.fabric import fabric
from serving.stack import Stack
from serving.versions import versions

DEVICES = {f"roce-net-fabric{number}": f"fabric{number}" for number in range(8)}
TOLERATION = {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def made(stack: Stack) -> list[Registration]:
    return registered(lambda opts: fabric(stack, *NAMES, opts))


def on_nodes(**nodes: Any) -> Stack:
    return stack(cluster={"provider": "existing", "nodes": nodes})


@pytest.mark.parametrize(
    "stack_",
    [
        stack(),
        on_nodes(network="sriov", attachments=["rdma-vf"]),
        on_nodes(network="pod", rdmaResources={}),
        on_nodes(network="multus", attachments=["made-by-the-cluster"]),
        stack(cluster={"provider": "doks"}),
    ],
    ids=["host", "sriov", "pod", "multus of the cluster", "doks"],
)
def test_nothing_is_made_where_the_cluster_has_everything(stack_: Stack) -> None:
    assert made(stack_) == []


def test_multus_makes_an_attachment_for_each_nic() -> None:
    found = made(on_nodes(network="multus", hostDevices=DEVICES))
    assert [seen.type for seen in found] == ["kubernetes:k8s.cni.cncf.io/v1:NetworkAttachmentDefinition"] * 8
    for seen in found:
        name = seen.inputs["metadata"]["name"]
        assert seen.inputs["metadata"]["namespace"] == NAMES[1]
        # As in DigitalOcean's "configure multi-node GPUs".
        assert json.loads(seen.inputs["spec"]["config"]) == {
            "cniVersion": "0.3.1",
            "type": "host-device",
            "device": DEVICES[name],
        }
        assert not seen.retained


def test_nic_cluster_policy_makes_the_resources_that_pods_ask_for() -> None:
    interfaces = {"rdma/fabric0": ["ens1f0np0"], "fabric1": ["ens2f0np0", "ens2f1np1"]}
    settings = {"provider": "existing", "profile": "nvidia-network-operator", "nicClusterPolicy": interfaces}
    (policy,) = made(stack(cluster=settings))
    assert policy.type == "kubernetes:mellanox.com/v1alpha1:NicClusterPolicy"
    assert policy.inputs["metadata"]["name"] == "nic-cluster-policy"
    assert "namespace" not in policy.inputs["metadata"]
    spec = policy.inputs["spec"]
    assert spec["tolerations"] == [TOLERATION]
    plugin = spec["rdmaSharedDevicePlugin"]
    assert plugin["version"] == f"network-operator-v{versions()['nvidia_network_operator']['version']}"
    shared = json.loads(plugin["config"])["configList"]
    # The plugin puts `rdma/` before each name: a pod asks for rdma/fabric0.
    assert [(entry["resourceName"], entry["selectors"]["ifNames"]) for entry in shared] == [
        ("fabric0", ["ens1f0np0"]),
        ("fabric1", ["ens2f0np0", "ens2f1np1"]),
    ]


def test_the_policy_of_a_whole_cluster_outlives_the_stack() -> None:
    cluster = {"provider": "existing", "nicClusterPolicy": {"fabric0": ["ens1f0np0"]}}
    (policy,) = made(stack(cluster=cluster))
    assert policy.retained
