"""The gate's Jobs: pods of an engine's shape, pinned to nodes, that end; which pairs, and which GPU a NIC goes with."""

from pathlib import Path
from typing import Any

import pytest
from fabric_tree import build
from rendered_services import engine_pod, stack

from serving.fabric.discovered import Discovered
from serving.rdma_gate.jobs import gate_job, gate_pod
from serving.rdma_gate.nearest_gpu import nearest_gpu
from serving.rdma_gate.pairs import Pair, rounds
from serving.rdma_gate.run import deadline_seconds
from serving.stack import Stack

NICS = [f"mlx5_{number}:1" for number in range(8)]
PAIR = Pair(2, "node-c", "node-d")
MULTUS = {"network": "multus", "hostDevices": {"roce-net-fabric0": "fabric0"}}
REVISION = "a" * 40


def job(settings: Stack, side: Any = "client", peer: str = "10.0.0.4") -> dict[str, Any]:
    return gate_job(gate_pod(settings, "under-test"), PAIR, side, NICS, "rocm", peer)


def pod(settings: Stack, side: Any = "client") -> dict[str, Any]:
    return job(settings, side)["spec"]["template"]


@pytest.mark.parametrize(
    "settings",
    [
        stack().on_fabric(Discovered({"UCX_NET_DEVICES": "mlx5_2:1"}, (991,))),
        stack(cluster={"provider": "doks", "nodes": MULTUS}),
        stack(weights={"mode": "hub", "revision": REVISION}, huggingFaceToken="hf_x"),
        stack(weights={"mode": "local", "path": "/mnt/weights"}, monitoring="annotations"),
    ],
)
def test_what_rdma_depends_on_is_the_engines(settings: Stack) -> None:
    gate, engine = pod(settings), engine_pod(settings)
    for key in ("hostNetwork", "dnsPolicy", "securityContext", "tolerations", "nodeSelector"):
        assert gate["spec"].get(key) == engine["spec"].get(key), key
    networks = "k8s.v1.cni.cncf.io/networks"
    assert gate["metadata"].get("annotations", {}).get(networks) == engine["metadata"].get("annotations", {}).get(
        networks
    )
    (one,), (other,) = gate["spec"]["containers"], engine["spec"]["containers"]
    for key in ("image", "resources", "securityContext"):
        assert one[key] == other[key], key
    ucx = [variable for variable in other["env"] if variable["name"].startswith("UCX_")]
    assert [variable for variable in one["env"] if variable["name"].startswith("UCX_")] == ucx
    assert {"mountPath": "/boot", "name": "boot", "readOnly": True} in one["volumeMounts"]


def test_it_has_neither_the_model_nor_the_hubs_token() -> None:
    settings = stack(weights={"mode": "hub", "revision": REVISION}, huggingFaceToken="hf_x")
    spec = pod(settings)["spec"]
    assert "weights" not in {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for mount in spec["containers"][0]["volumeMounts"]} <= {it["name"] for it in spec["volumes"]}
    assert "HF_TOKEN" not in str(spec)
    assert "readinessProbe" not in spec["containers"][0]


def test_it_runs_once_on_its_node_and_ends() -> None:
    for side, node in (("client", "node-c"), ("server", "node-d")):
        made = job(stack(), side)
        spec = made["spec"]
        assert made["metadata"]["name"] == f"rdma-gate-2-{side}"
        assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")
        assert 0 < spec["ttlSecondsAfterFinished"] < 3600
        assert spec["activeDeadlineSeconds"] == deadline_seconds(8) < 3600
        affinity = spec["template"]["spec"]["affinity"]
        (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        assert "podAntiAffinity" in affinity, "no gate beside an engine"


def test_it_is_no_engine_to_anybody() -> None:
    labels = pod(stack())["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == "rdma-gate"
    assert labels["app.kubernetes.io/instance"] == "under-test"


def test_the_driver_is_told_side_devices_and_peer() -> None:
    def command(side: str, peer: str) -> list[str]:
        return job(stack(), side, peer)["spec"]["template"]["spec"]["containers"][0]["command"]

    told = ["--devices", ",".join(NICS), "--memory", "rocm"]
    assert command("client", "10.0.0.4")[2:] == ["serving.rdma_gate.run", "client", *told, "--peer", "10.0.0.4"]
    assert command("server", "")[2:] == ["serving.rdma_gate.run", "server", *told]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_every_node_is_client_once_and_server_once_and_in_one_pair_at_a_time(count: int) -> None:
    nodes = [f"node-{number}" for number in range(count)]
    planned = rounds(nodes)
    assert len(planned) == 2 + count % 2
    for pairs in planned:
        used = [node for pair in pairs for node in (pair.client, pair.server)]
        assert len(set(used)) == len(used)
    every = [pair for pairs in planned for pair in pairs]
    assert sorted(pair.client for pair in every) == sorted(pair.server for pair in every) == nodes
    assert sorted(pair.number for pair in every) == list(range(count))


@pytest.mark.parametrize("nodes", [[], ["a"], ["a", "a"]])
def test_no_ring_of_one_node(nodes: list[str]) -> None:
    with pytest.raises(ValueError, match="no ring"):
        rounds(nodes)


def test_the_nearest_gpu_is_on_the_same_numa_node_where_paths_do_not_tell(tmp_path: Path) -> None:
    def numa(node: dict[str, Any]) -> None:
        for number, gpu in enumerate(node["gpus"].values()):
            gpu["numa"] = number // 4
        node["rdma"]["mlx5_9"]["numa"] = 1
        node["rdma"]["mlx5_2"]["numa"] = 0

    sys = build(tmp_path, "doks", numa) / "sys"
    assert nearest_gpu("mlx5_2", 0, sys) == 0
    assert nearest_gpu("mlx5_9", 7, sys) == 7
    assert nearest_gpu("mlx5_9", 0, sys) == 4, "of those on its NUMA node"


def test_without_any_hint_the_third_nic_goes_with_the_third_gpu(tmp_path: Path) -> None:
    sys = build(tmp_path, "doks") / "sys"
    assert [nearest_gpu(f"mlx5_{number + 2}", number, sys) for number in range(8)] == list(range(8))
    assert nearest_gpu("mlx5_0", 0, tmp_path / "elsewhere") is None


def test_a_shared_switch_decides_before_everything_else(tmp_path: Path) -> None:
    sys = build(tmp_path, "doks") / "sys"
    switch = sys / "devices/pci0000:00/0000:80:01.0"
    switch.mkdir()
    for address in ("0000:86:00.0", "0000:bd:00.0"):  # mlx5_2 and the last GPU
        (sys / "devices/pci0000:00" / address).rename(switch / address)
    link = sys / "bus/pci/devices/0000:bd:00.0"
    link.unlink()
    link.symlink_to(switch / "0000:bd:00.0")
    nic = sys / "class/infiniband/mlx5_2"
    nic.unlink()
    nic.symlink_to(switch / "0000:86:00.0/infiniband/mlx5_2")
    (nic.resolve() / "device").unlink()
    (nic.resolve() / "device").symlink_to(switch / "0000:86:00.0")
    assert nearest_gpu("mlx5_2", 0, sys) == 7
