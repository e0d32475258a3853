"""Network attachments and NVIDIA's policy: what each network mode needs, and what belongs to somebody else."""

import pytest
from preflight_facts import INPUTS, MULTUS, Json, facts

from infra.provider.preflight import network, permissions
from infra.provider.preflight.facts import Permission

SRIOV = {"network": "sriov", "attachments": ["rdma-vf", "rdma-vf", "net/other", "rdma-vf@net1"]}
NADS = {"k8s.cni.cncf.io/v1": {"network-attachment-definitions"}}
POLICIES = {"mellanox.com/v1alpha1": {"nicclusterpolicies"}}


def policy(stack: str = "") -> Json:
    return {
        "metadata": {"name": "nic-cluster-policy", "labels": {"app.kubernetes.io/instance": stack} if stack else None}
    }


@pytest.mark.parametrize(
    ("inputs", "seen", "words"),
    [
        ({"network": "host"}, {}, ""),
        ({"network": "pod"}, {}, ""),
        (SRIOV, {}, "network sriov needs; install Multus"),
        (MULTUS, {}, "network multus needs"),
        (MULTUS, {"served": NADS}, ""),
        (SRIOV, {"served": NADS}, "no NetworkAttachmentDefinition space/rdma-vf, net/other; make it"),
        (SRIOV, {"served": NADS, "attachments": {"space/rdma-vf"}}, "no NetworkAttachmentDefinition net/other;"),
        (SRIOV, {"served": NADS, "attachments": {"space/rdma-vf", "net/other"}}, ""),
        ({**MULTUS, "attachments": ["fabric0", "fabric1"]}, {"served": NADS}, "Definition space/fabric1;"),
        ({"nicClusterPolicy": True}, {}, "install NVIDIA's network operator"),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": []}, ""),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": None}, ""),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": [policy("pd-2p1d")]}, ""),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": [policy("other")]}, "somebody else's"),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": [policy()]}, "NicClusterPolicy nic-cluster-"),
        ({"nicClusterPolicy": False}, {"served": POLICIES, "nic_policies": [policy()]}, ""),
    ],
)
def test_network(inputs: Json, seen: Json, words: str) -> None:
    lines = network.lacks({**INPUTS, **inputs}, facts(**seen))
    assert len(lines) == bool(words)
    assert words in "".join(lines)


def test_attachments_that_cannot_be_looked_at_are_a_matter_of_permissions() -> None:
    hidden = [Permission("k8s.cni.cncf.io", "network-attachment-definitions", "get", "net")]
    seen = facts(served=NADS, attachments={"space/rdma-vf"}, denied=hidden)
    inputs = {**INPUTS, **SRIOV}
    assert hidden[0] in permissions.needed(inputs)
    assert network.lacks(inputs, seen) == []
    assert "may not get network-attachment-definitions.k8s.cni.cncf.io in namespace net" in "".join(
        permissions.lacks(inputs, seen)
    )
