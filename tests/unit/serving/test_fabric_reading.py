"""What is read of a node: devices, ports, addresses, network devices, the kernel, GPUs."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fabric_tree import Description, build, read

from serving.fabric import gpus
from serving.fabric.gpus import read_gpus
from serving.fabric.kernel import read_kernel
from serving.fabric.node import NodeFabric, read_node
from serving.fabric.sysfs import RdmaDevice


def device(fabric: NodeFabric, name: str) -> RdmaDevice:
    return next(found for found in fabric.devices if found.name == name)


def test_a_virtual_function_of_the_fabric(tmp_path: Path) -> None:
    found = device(read(tmp_path, "doks"), "mlx5_2")
    assert (found.driver, found.function, found.software) == ("mlx5", "vf", False)
    assert (found.vendor, found.device, found.pci_address) == ("15b3", "101e", "0000:86:00.0")
    assert found.numa_node is None  # -1: a virtual machine
    (port,) = found.ports
    assert (port.state, port.phys_state, port.link_layer) == ("ACTIVE", "LinkUp", "Ethernet")
    assert (port.rate_gbps, port.active_mtu) == (400, 4096)
    assert port.netdev
    assert (port.netdev.name, port.netdev.operstate, port.netdev.mtu) == ("fabric0", "up", 4200)
    assert (port.netdev.vrf, port.netdev.front_end) == ("vrf-fabric0", False)


def test_its_addresses(tmp_path: Path) -> None:
    """Four slots of the table; the empty ones are left out."""
    (port,) = device(read(tmp_path, "doks"), "mlx5_2").ports
    assert [(gid.index, gid.type, gid.scope, gid.routable) for gid in port.gids] == [
        (0, "IB/RoCE v1", "link-local", False),
        (1, "RoCE v2", "link-local", False),
        (2, "IB/RoCE v1", "ula", False),
        (3, "RoCE v2", "ula", True),
    ]
    assert {gid.netdev for gid in port.gids} == {"fabric0"}
    assert port.gids[3].address == "fd02:0:0:58::1"


@pytest.mark.parametrize(
    ("address", "scope", "written"),
    [
        ("::ffff:10.10.0.1", "ipv4", "::ffff:10.10.0.1"),
        ("::ffff:169.254.3.4", "link-local", "::ffff:169.254.3.4"),
        ("fc00::1", "ula", "fc00::1"),
        ("fdff::1", "ula", "fdff::1"),
        ("fe00::1", "global", "fe00::1"),
        ("2001:db8::1", "global", "2001:db8::1"),
        ("febf::1", "link-local", "febf::1"),
    ],
)
def test_scopes(tmp_path: Path, address: str, scope: str, written: str) -> None:
    def change(node: Description) -> None:
        node["rdma"]["rxe0"]["gids"] = [f"0 v2 {address}"]

    (gid,) = device(read(tmp_path, "soft_roce", change), "rxe0").ports[0].gids
    assert (gid.scope, gid.address) == (scope, written)


def test_devices_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = [found.name for found in read(tmp_path, "doks").devices]
    assert names == [f"mlx5_{number}" for number in (0, *range(2, 10), 16, 17, 18, 19)]


def test_a_port_that_is_down_has_its_network_device_from_pci(tmp_path: Path) -> None:
    (port,) = device(read(tmp_path, "nic_down"), "mlx5_5").ports
    assert (port.state, port.phys_state, port.gids) == ("DOWN", "Disabled", ())
    assert port.netdev
    assert (port.netdev.name, port.netdev.operstate) == ("fabric3", "down")


def test_soft_roce_is_software(tmp_path: Path) -> None:
    found = device(read(tmp_path, "soft_roce"), "rxe0")
    assert (found.driver, found.software, found.function, found.pci_address) == ("rxe", True, None, None)
    assert found.ports[0].active_mtu == 4096  # as ibv_devinfo of the same machine has it
    assert found.ports[0].rate_gbps == 2.5


def test_physical_functions_and_drivers(tmp_path: Path) -> None:
    oci, pollara = (
        device(read(tmp_path / "a", "oci_mi300x"), "mlx5_9"),
        device(read(tmp_path / "b", "pollara"), "ionic_9"),
    )
    assert (oci.function, oci.numa_node, oci.driver) == ("pf", 1, "mlx5")
    assert (pollara.function, pollara.vendor, pollara.driver) == ("pf", "1dd8", "ionic")


def test_a_virtual_function_on_its_host(tmp_path: Path) -> None:
    """There the kernel links it to the physical one; its id may be a later model's."""
    root = build(tmp_path, "oci_mi300x")
    (root / "sys/class/infiniband/mlx5_0/device/physfn").symlink_to("../0000:1f:00.0")
    assert device(read_node(root), "mlx5_0").function == "vf"


@pytest.mark.parametrize(("ethernet", "roce"), [(1500, 1024), (4191, 2048), (4192, 4096), (9000, 4096), (300, None)])
def test_active_mtu_follows_the_ethernet_mtu(tmp_path: Path, ethernet: int, roce: int | None) -> None:
    fabric = read(tmp_path, "doks", lambda node: node["netdevs"]["fabric0"].update(mtu=ethernet))
    assert device(fabric, "mlx5_2").ports[0].active_mtu == roce


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Global tclass=106", 106),
        ("41", 41),
        ("", None),
        ("Global tclass=96\nsrc_ip=10.0.0.1,tclass=7", 96),
        ("src_ip=10.0.0.1,tclass=7", None),
    ],
)
def test_traffic_class(tmp_path: Path, content: str, expected: int | None) -> None:
    fabric = read(tmp_path, "doks", lambda node: node["rdma"]["mlx5_2"].update(traffic_class=content))
    assert device(fabric, "mlx5_2").ports[0].traffic_class == expected


def front_ends(fabric: NodeFabric) -> set[str]:
    return {port.netdev.name for _, port in fabric.ports if port.netdev and port.netdev.front_end}


def test_front_end_is_below_the_bond_of_the_default_route(tmp_path: Path) -> None:
    def change(node: Description) -> None:
        node["netdevs"]["bond0"] = {"flags": "0x1443"}
        node["netdevs"]["eth0"]["master"] = "bond0"
        node["default_route"] = "bond0"

    fabric = read(tmp_path, "oci_mi300x", change)
    assert front_ends(fabric) == {"eth0"}
    netdev = device(fabric, "mlx5_1").ports[0].netdev
    assert netdev
    assert (netdev.master, netdev.vrf) == ("bond0", None)


def test_a_default_route_that_nothing_takes_makes_no_front_end(tmp_path: Path) -> None:
    """A fabric's DHCP may give one, with a higher metric."""
    fabric = read(tmp_path, "oci_mi300x", lambda node: node.update(default_route={"rdma0": 200, "eth0": 100}))
    assert front_ends(fabric) == {"eth0"}


ROUTE6 = "{} {} {} 00 fe800000000000000000000000000001 {:08x} 00000001 00000000 {} {:>8}"
ANY, FABRIC = "0" * 32, "fd02" + "0" * 28


def test_default_route_of_ipv6_alone(tmp_path: Path) -> None:
    """The kernel lists routes of VRFs and of what it rejects as well: neither makes a front end."""
    routes = [
        ROUTE6.format(ANY, "00", ANY, 1024, "00450003", "eth0"),
        ROUTE6.format(ANY, "00", ANY, 512, "00000003", "fabric0"),
        ROUTE6.format(FABRIC, "20", ANY, 1, "00000003", "fabric1"),
        ROUTE6.format(ANY, "00", ANY, 0, "00200200", "lo"),
    ]

    def change(node: Description) -> None:
        del node["default_route"]
        node["files"]["proc/net/ipv6_route"] = "\n".join(routes)

    assert front_ends(read(tmp_path, "doks", change)) == {"eth0"}


def test_kernel(tmp_path: Path) -> None:
    kernel = read(tmp_path, "oci_mi300x").kernel
    assert kernel.release == "6.8.0-1025-oracle"
    assert (kernel.config_source, kernel.dmabuf, kernel.options["CONFIG_HSA_AMD_P2P"]) == ("/boot", True, True)
    assert (kernel.peer_memory, kernel.peer_memory_client) == (True, True)
    assert (kernel.amdgpu, kernel.rocm) == ("6.10.5", "6.3.0-39")
    assert (kernel.iommu_passthrough, kernel.numa_balancing) == (True, False)


def test_kernel_of_debian_has_neither(tmp_path: Path) -> None:
    kernel = read(tmp_path, "doks").kernel
    assert (kernel.config_source, kernel.dmabuf, kernel.peer_memory) == ("/boot", False, False)
    assert not kernel.iommu_passthrough


def test_kernel_options_from_proc_or_from_nowhere(tmp_path: Path) -> None:
    root = build(tmp_path, "oci_mi300x")
    config = root / "boot/config-6.8.0-1025-oracle"
    (root / "proc/config.gz").write_bytes(gzip.compress(config.read_bytes()))
    config.unlink()
    assert (read_node(root).kernel.config_source, read_node(root).kernel.dmabuf) == ("/proc/config.gz", True)
    (root / "proc/config.gz").unlink()
    assert (read_node(root).kernel.config_source, read_node(root).kernel.dmabuf) == (None, None)


@pytest.mark.parametrize("missing", ["CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"])
def test_dmabuf_needs_both_options(tmp_path: Path, missing: str) -> None:
    assert read(tmp_path, "pollara", lambda node: node["config"].update({missing: False})).kernel.dmabuf is False


@pytest.mark.parametrize(
    ("settings", "may_pin"),
    [
        ({"memlock": "unlimited"}, True),
        ({"memlock": 8388608}, False),
        ({"memlock": 8388608, "capabilities": 1 << 14}, True),
        ({"memlock": 8388608, "capabilities": 1 << 13}, False),
    ],
)
def test_what_a_process_may_pin(tmp_path: Path, settings: dict[str, Any], may_pin: bool) -> None:
    assert read(tmp_path, "doks", lambda node: node.update(settings)).kernel.may_pin is may_pin


def test_an_option_that_is_a_module_is_not_built_in(tmp_path: Path) -> None:
    root = build(tmp_path, "pollara")
    config = root / "boot/config-6.8.0-90-generic"
    config.write_text(config.read_text().replace("CONFIG_PCI_P2PDMA=y", "CONFIG_PCI_P2PDMA=m"))
    assert read_node(root).kernel.dmabuf is False


def test_peer_memory_whose_symbol_is_not_visible(tmp_path: Path) -> None:
    """A container may not see /proc/kallsyms; the driver that registered shows below /sys."""
    kernel = read(tmp_path, "oci_mi300x", lambda node: node.update(kallsyms=[])).kernel
    assert (kernel.peer_memory, kernel.peer_memory_client) == (True, True)


def test_a_gpus_place_on_the_pci_bus(tmp_path: Path) -> None:
    fabric = read(tmp_path, "doks", lambda node: node.update(gpus={"0001:c1:02.1": {"device": "74b9"}}))
    assert [gpu.pci_address for gpu in fabric.gpus.gpus] == ["0001:c1:02.1"]


def test_gpus(tmp_path: Path) -> None:
    found = read(tmp_path, "oci_mi300x").gpus.gpus
    assert len(found) == 8  # and not the CPU, which is a node of the topology too
    assert (found[0].pci_address, found[0].numa_node, found[0].device) == ("0000:11:00.0", 0, "74a1")
    assert (found[7].pci_address, found[7].numa_node, found[7].partitions) == ("0000:da:00.0", 1, 1)


def test_a_partitioned_gpu_is_one_gpu(tmp_path: Path) -> None:
    root = build(tmp_path, "oci_mi300x")
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    (nodes / "9").mkdir()
    (nodes / "9/properties").write_text((nodes / "8/properties").read_text())
    found = read_node(root).gpus.gpus
    assert len(found) == 8
    assert found[7].partitions == 2


def test_render_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root could give the files of a tree another group."""
    monkeypatch.setattr(gpus, "group_id", lambda path: 991 if path.name == "renderD128" else 44)
    assert read(tmp_path, "doks").gpus.render_groups == (44, 991)


@pytest.mark.parametrize("name", ["doks", "oci_mi300x", "pollara", "no_rdma", "nic_down", "soft_roce"])
def test_json_reads_back_as_the_same(tmp_path: Path, name: str) -> None:
    fabric = read(tmp_path, name)
    assert NodeFabric.model_validate_json(fabric.model_dump_json()) == fabric
    assert NodeFabric.model_validate_json(fabric.model_dump_json(exclude_defaults=True)) == fabric


@pytest.mark.parametrize(
    "damage", [lambda it: it[:40], lambda it: it[:20] + b"no deflate" + it[30:], lambda it: b"x" * 9]
)
def test_a_damaged_list_of_kernel_options_is_none(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "proc").mkdir()
    options = "".join(f"CONFIG_{number}=y\n" for number in range(500)).encode()
    (tmp_path / "proc/config.gz").write_bytes(damage(gzip.compress(options)))
    kernel = read_kernel(tmp_path)
    assert (kernel.config_source, kernel.dmabuf) == (None, None)


def test_a_render_node_that_is_gone_has_no_group(tmp_path: Path) -> None:
    folder = tmp_path / "dev/dri"
    folder.mkdir(parents=True)
    (folder / "renderD128").write_text("")
    (folder / "renderD999").symlink_to("gone")
    assert read_gpus(tmp_path).render_groups == (os.getgid(),)


def test_an_empty_root_is_a_node_of_which_nothing_is_known(tmp_path: Path) -> None:
    assert read_node(tmp_path) == NodeFabric.model_validate({"kernel": {"memlock": 0}})
