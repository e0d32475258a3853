"""What follows from a node: which NICs, which address, which traffic class, which way to GPU memory."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fabric_tree import Description, build, read

from serving.fabric import gpus
from serving.fabric.choose import Choice, choose
from serving.fabric.node import read_node

Change = Callable[[Description], object]
DOKS = [f"mlx5_{number}:1" for number in range(2, 10)]
SKIPPING = (0, 2, 3, 4, 5, 7, 8, 9)


def decide(root: Path, name: str, change: Change = lambda node: None) -> Choice:
    return choose(read(root, name, change))


@pytest.mark.parametrize(
    ("name", "devices", "gid_index", "traffic_class"),
    [
        ("doks", DOKS, 3, None),
        ("oci_mi300x", [f"mlx5_{number}:1" for number in SKIPPING], None, 41),
        ("pollara", [f"ionic_{number}:1" for number in SKIPPING], None, None),
        ("nic_down", [name for name in DOKS if name != "mlx5_5:1"], 3, None),
        ("no_rdma", [], None, None),
        ("soft_roce", [], None, None),
    ],
)
def test_each_kind_of_node(
    tmp_path: Path, name: str, devices: list[str], gid_index: int | None, traffic_class: int | None
) -> None:
    choice = decide(tmp_path, name)
    assert list(choice.net_devices) == devices
    assert (choice.gid_index, choice.traffic_class) == (gid_index, traffic_class)


def test_why_the_others_are_not_used(tmp_path: Path) -> None:
    assert decide(tmp_path / "doks", "doks").excluded == {
        "mlx5_0:1": "front end: eth0 carries the default route",
        **{f"mlx5_{number}:1": "port is DOWN (Polling)" for number in range(16, 20)},
    }
    assert decide(tmp_path / "soft", "soft_roce").excluded == {"rxe0:1": "software (rxe), no NIC"}


def test_environment_of_engines(tmp_path: Path) -> None:
    assert decide(tmp_path / "oci", "oci_mi300x").environment == {
        "UCX_NET_DEVICES": ",".join(f"mlx5_{number}:1" for number in SKIPPING),
        "UCX_IB_TRAFFIC_CLASS": "41",
        "UCX_ROCM_COPY_DMABUF": "y",
    }
    assert decide(tmp_path / "doks", "doks").environment == {"UCX_NET_DEVICES": ",".join(DOKS), "UCX_IB_GID_INDEX": "3"}
    assert decide(tmp_path / "none", "no_rdma").environment == {}


def test_groups_of_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "group_id", lambda path: 991)
    assert decide(tmp_path / "a", "doks").supplemental_groups == (991,)
    monkeypatch.setattr(gpus, "group_id", lambda path: 0)
    assert decide(tmp_path / "b", "doks").supplemental_groups == ()


def every_nic(changes: dict[str, Any], prefix: str, numbers: tuple[int, ...] = SKIPPING) -> Change:
    return lambda node: [node["rdma"][f"{prefix}_{number}"].update(changes) for number in numbers]


def test_ipv6_alone_on_pollara_needs_index_1(tmp_path: Path) -> None:
    """UCX itself would take index 0, link-local, where there is no IPv4."""
    gids = {"gids": ["0 v2 fe80::690:81ff:fe37:a9e8", "1 v2 2001:db8:9::101"]}
    assert decide(tmp_path, "pollara", every_nic(gids, "ionic")).gid_index == 1


def test_ipv4_comes_before_ipv6_as_ucx_has_it(tmp_path: Path) -> None:
    gids = {"gids": ["0 v2 fe80::1", "1 v2 2001:db8:9::101", "2 v2 ::ffff:10.102.9.101"]}
    assert decide(tmp_path, "pollara", every_nic(gids, "ionic")).gid_index is None


def test_addresses_of_a_vlan_come_after_the_ports_own(tmp_path: Path) -> None:
    """UCX itself would take index 1, over IPv4, whichever network device has it."""
    gids = {"gids": ["0 v2 fe80::1", "1 v2 ::ffff:192.168.7.1 storage.7", "2 v2 fd02::1"]}
    assert decide(tmp_path, "pollara", every_nic(gids, "ionic")).gid_index == 2


def test_an_index_that_all_share_is_taken(tmp_path: Path) -> None:
    """One NIC has another address first; 3 is one of the fabric's on all."""

    def change(node: Description) -> None:
        node["rdma"]["mlx5_2"]["gids"] = ["0 v2 fd02::9", "1 v2 fe80::1", "3 v2 fd02:0:0:58::1"]

    assert decide(tmp_path, "doks", change).gid_index == 3


def test_addresses_in_different_places_are_an_error(tmp_path: Path) -> None:
    def change(node: Description) -> None:
        node["rdma"]["mlx5_2"]["gids"] = ["1 v2 fe80::1", "5 v2 fd02:0:0:58::1"]

    choice = decide(tmp_path, "doks", change)
    assert choice.gid_index is None
    assert "mlx5_2:1 5, mlx5_3:1 3" in text_of(choice, "gid-index")
    assert not choice.usable


def text_of(choice: Choice, code: str) -> str:
    (found,) = [finding for finding in choice.findings if finding.code == code]
    return found.text


def test_a_nic_without_an_address_is_not_used(tmp_path: Path) -> None:
    choice = decide(tmp_path, "pollara", every_nic({"gids": ["0 v2 fe80::1"]}, "ionic", (4,)))
    assert "ionic_4:1" not in choice.net_devices
    assert choice.excluded["ionic_4:1"] == "only a link-local address"
    assert "ionic_4:1 (enp88s0): only a link-local address" in text_of(choice, "nic-lost")


def test_link_local_addresses_alone_are_used_with_a_warning(tmp_path: Path) -> None:
    choice = decide(tmp_path, "pollara", every_nic({"gids": ["0 v2 fe80::1"]}, "ionic"))
    assert (len(choice.net_devices), choice.gid_index) == (8, None)
    assert text_of(choice, "link-local")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"node_type": "4: RNIC"}, "iWARP, neither RoCE nor InfiniBand"),
        ({"netdev": "gone", "pci": "0000:fe:00.0"}, "its network device is in another network namespace"),
        ({"gids": ["0 v1 fe80::1"]}, "no RoCE v2 address"),
        ({"state": "2: INIT"}, "port is INIT (LinkUp)"),
        ({"id": "15b3:101d", "rate": "100 Gb/sec (4X EDR)"}, "another model, 100 of 400 Gb/s"),
    ],
)
def test_ports_that_are_no_nic_to_use(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    choice = decide(tmp_path, "oci_mi300x", every_nic(changes, "mlx5", (4,)))
    assert choice.excluded["mlx5_4:1"] == reason
    assert len(choice.net_devices) == 7


def test_a_network_device_that_is_down(tmp_path: Path) -> None:
    choice = decide(tmp_path, "oci_mi300x", lambda node: node["netdevs"]["rdma3"].update(operstate="down"))
    assert choice.excluded["mlx5_4:1"] == "rdma3 is down"


def test_infiniband_needs_no_gid(tmp_path: Path) -> None:
    changes = {"link_layer": "InfiniBand", "gids": []}
    choice = decide(tmp_path, "oci_mi300x", every_nic(changes, "mlx5"))
    assert (len(choice.net_devices), choice.gid_index, choice.traffic_class) == (8, None, None)
    assert choice.usable
    mixed = decide(tmp_path / "mixed", "oci_mi300x", every_nic(changes, "mlx5", (4,)))
    assert len(mixed.net_devices) == 8
    assert 3 in mixed.gid_indices, "of the others, as that one has none"


def test_different_traffic_classes_are_left_to_a_person(tmp_path: Path) -> None:
    choice = decide(tmp_path, "oci_mi300x", every_nic({"traffic_class": "Global tclass=106"}, "mlx5", (4,)))
    assert choice.traffic_class is None
    assert "mlx5_3:1 41, mlx5_4:1 106" in text_of(choice, "traffic-class")


def test_traffic_class_0_is_one(tmp_path: Path) -> None:
    change = every_nic({"traffic_class": "Global tclass=0"}, "mlx5", (4,))
    assert "mlx5_3:1 41, mlx5_4:1 0" in text_of(decide(tmp_path, "oci_mi300x", change), "traffic-class")


OFF = {"config": {"CONFIG_PCI_P2PDMA": False, "CONFIG_DMABUF_MOVE_NOTIFY": True}}
PEER_MEMORY = {"kallsyms": ["_text", "ib_register_peer_memory_client"]}


@pytest.mark.parametrize(
    ("settings", "method", "reason", "dmabuf"),
    [
        ({}, "dma-buf", "/boot/config-6.8.0-90-generic", "y"),
        (PEER_MEMORY, "dma-buf", "/boot/config-6.8.0-90-generic", "y"),
        (OFF, "none", "no CONFIG_PCI_P2PDMA in /boot/config-6.8.0-90-generic, and no peer memory", None),
        ({**OFF, **PEER_MEMORY}, "peer-memory", "whether amdgpu registered is not visible", "n"),
        ({"config": None}, "unknown", "/boot/config-6.8.0-90-generic is not visible", None),
        ({"config": None, **PEER_MEMORY}, "peer-memory", "ib_register_peer_memory_client", "n"),
        ({"gpus": {}}, "none", "no AMD GPU found", None),
    ],
)
def test_the_way_to_gpu_memory(
    tmp_path: Path, settings: dict[str, Any], method: str, reason: str, dmabuf: str | None
) -> None:
    choice = decide(tmp_path, "pollara", lambda node: node.update(settings))
    assert choice.gpu_direct.method == method
    assert reason in choice.gpu_direct.reason
    assert choice.environment.get("UCX_ROCM_COPY_DMABUF") == dmabuf


def test_a_kernel_whose_options_ucx_does_not_find(tmp_path: Path) -> None:
    """UCX up to 1.22 does not read /proc/config.gz."""
    root = build(tmp_path, "pollara")
    config = root / "boot/config-6.8.0-90-generic"
    (root / "proc/config.gz").write_bytes(gzip.compress(config.read_bytes()))
    config.unlink()
    found = choose(read_node(root)).gpu_direct
    assert found.method == "unknown"
    assert "UCX looks in /boot/config-6.8.0-90-generic" in found.reason
