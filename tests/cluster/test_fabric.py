"""Network attachments and NVIDIA's policy in a real API server; definitions are stand-ins (stand_ins/fabric.yaml)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.cluster.piece import Piece
from tests.cluster.stand_in_definitions import stand_in_definitions
from tools.rehearsal.cluster import SimulatedCluster

ATTACHMENTS = ("k8s.cni.cncf.io", "v1")
POLICIES = ("mellanox.com", "v1alpha1", "nicclusterpolicies")
DEVICES = {f"roce-net-fabric{number}": f"fabric{number}" for number in range(8)}
MULTUS = {"provider": "existing", "nodes": {"network": "multus", "hostDevices": DEVICES}}
POLICY = {"provider": "existing", "nicClusterPolicy": {"rdma/fabric0": ["ens1f0np0"]}}


@pytest.fixture
def objects(api: client.ApiClient) -> Iterator[Any]:
    found: Any = client.CustomObjectsApi(api)
    with stand_in_definitions(api, "fabric"):
        yield found


@pytest.fixture
def piece(tmp_path: Path, cluster: SimulatedCluster, namespace: str, objects: Any) -> Piece:
    return Piece(tmp_path, cluster, namespace, "infra.fabric:fabric")


def policies(objects: Any) -> list[Any]:
    return objects.list_cluster_custom_object(*POLICIES)["items"]


def test_attachments_come_and_go_with_the_stack(piece: Piece, objects: Any) -> None:
    def attached() -> dict[str, str]:
        items = objects.list_namespaced_custom_object(*ATTACHMENTS, piece.namespace, "network-attachment-definitions")
        return {i["metadata"]["name"]: json.loads(i["spec"]["config"])["device"] for i in items["items"]}

    up = piece.up(cluster=MULTUS)
    assert up.ok, up.text
    assert attached() == DEVICES
    assert piece.unchanged()
    assert piece.pulumi("destroy --yes --skip-preview").ok
    assert attached() == {}


def test_the_policy_is_made_and_outlives_the_stack(piece: Piece, objects: Any) -> None:
    up = piece.up(cluster=POLICY)
    assert up.ok, up.text
    assert [p["metadata"]["name"] for p in policies(objects)] == ["nic-cluster-policy"]
    assert piece.unchanged()
    assert piece.pulumi("destroy --yes --skip-preview").ok
    assert len(policies(objects)) == 1, "other people's pods use its device plugin"
    again = piece.up(cluster=POLICY)
    assert again.ok, again.text


def test_somebody_elses_policy_is_not_changed(piece: Piece, objects: Any) -> None:
    config = json.dumps({"configList": [{"resourceName": "theirs"}]})
    plugin = {"image": "k8s-rdma-shared-dev-plugin", "repository": "example", "version": "theirs", "config": config}
    theirs = {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy"},
        "spec": {"rdmaSharedDevicePlugin": plugin},
    }
    objects.create_cluster_custom_object(*POLICIES, theirs)
    up = piece.up(cluster=POLICY)
    assert not up.ok
    assert "conflict" in up.text
    assert policies(objects)[0]["spec"]["rdmaSharedDevicePlugin"] == plugin
