"""RDMA devices of /sys/class/infiniband with their ports."""

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from serving.fabric.files import integer, link_name, names, numa_node, pci_address, text
from serving.fabric.gids import Gid, read_gids
from serving.fabric.netdevs import NetDevice, default_route_devices, read_netdev

# PCI driver -> RDMA driver, where the names differ (drivers/infiniband/hw).
_RDMA_DRIVERS = {"mlx5_core": "mlx5", "mlx4_core": "mlx4", "bnxt_en": "bnxt_re", "ice": "irdma", "i40e": "irdma"}
# Virtual functions by PCI id, as a guest that has only those sees no link to the physical one: mlx5/core/main.c
# (mlx5_core_pci_table), pensando/ionic/ionic.h.
_VF_IDS = {
    "15b3": {"1012", "1014", "1016", "1018", "101a", "101c", "101e", "a2d3"},
    "1dd8": {"1003"},
}
# Headers that RoCE needs in an Ethernet payload, bytes: include/rdma/ib_addr.h iboe_get_mtu with the sizes of
# include/rdma/ib_pack.h (GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4).
_ROCE_HEADERS = 96
_IB_MTUS = (4096, 2048, 1024, 512, 256)


class RdmaPort(BaseModel):
    """One port. rate_gbps: Gb/s, as the port runs now. active_mtu: bytes of payload in a packet; see `_active_mtu`.

    traffic_class: what the administrator set for all connections (0 to 255); only NVIDIA's out-of-tree driver has it.
    netdev: None as well when the network device is in another network namespace.
    """

    model_config = ConfigDict(frozen=True)

    number: int
    state: str
    phys_state: str
    link_layer: str
    rate_gbps: float | None = None
    active_mtu: int | None = None
    traffic_class: int | None = None
    netdev: NetDevice | None = None
    gids: tuple[Gid, ...] = ()

    @property
    def active(self) -> bool:
        return self.state == "ACTIVE"


class RdmaDevice(BaseModel):
    """driver: mlx5, ionic, irdma, rxe, ...; `software` when it has no hardware and is of no known kind.

    vendor, device: PCI ids, four hexadecimal digits. function: whether it is a physical or virtual PCI function, None
    for software. iwarp: it speaks iWARP and neither RoCE nor InfiniBand.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    driver: str
    software: bool
    iwarp: bool = False
    function: Literal["pf", "vf"] | None = None
    vendor: str | None = None
    device: str | None = None
    pci_address: str | None = None
    numa_node: int | None = None
    ports: tuple[RdmaPort, ...] = ()


def read_devices(root: Path) -> tuple[RdmaDevice, ...]:
    """All RDMA devices below `root`, in the order of their names; empty where there are none."""
    folder = root / "sys/class/infiniband"
    routes = default_route_devices(root)
    return tuple(_device(root, folder / name, routes) for name in names(folder))


def _device(root: Path, folder: Path, routes: frozenset[str]) -> RdmaDevice:
    pci = folder / "device"
    address = pci_address(folder)
    vendor, device = _pci_id(pci / "vendor"), _pci_id(pci / "device")
    function = "vf" if (pci / "physfn").exists() or device in _VF_IDS.get(vendor or "", ()) else "pf"
    return RdmaDevice(
        name=folder.name,
        driver=_driver(folder),
        software=address is None,
        iwarp=(text(folder / "node_type") or "").endswith("RNIC"),
        function=function if address else None,
        vendor=vendor,
        device=device,
        pci_address=address,
        numa_node=numa_node(pci),
        ports=tuple(_port(root, folder, int(number), routes) for number in names(folder / "ports")),
    )


def _driver(folder: Path) -> str:
    driver = link_name(folder / "device/driver")
    if driver:
        return _RDMA_DRIVERS.get(driver, driver)
    return "rxe" if (folder / "parent").exists() else "software"  # rxe_verbs.c: the only driver with this attribute


def _pci_id(path: Path) -> str | None:
    return f"{number:04x}" if (number := integer(path)) is not None else None


def _port(root: Path, device: Path, number: int, routes: frozenset[str]) -> RdmaPort:
    folder = device / "ports" / str(number)
    gids = read_gids(folder)
    link_layer = text(folder / "link_layer") or "unknown"
    name = _netdev_name(device, folder, number)
    netdev = read_netdev(root, name, routes) if name else None
    return RdmaPort(
        number=number,
        state=_word(folder / "state"),
        phys_state=_word(folder / "phys_state"),
        link_layer=link_layer,
        rate_gbps=_first_number(folder / "rate"),
        active_mtu=_active_mtu(netdev.mtu) if netdev and netdev.mtu and link_layer == "Ethernet" else None,
        traffic_class=_traffic_class(device / "tc" / str(number) / "traffic_class"),
        netdev=netdev,
        gids=gids,
    )


def _netdev_name(device: Path, port: Path, number: int) -> str | None:
    """From the GID table, where a bond stands for the devices below it; a port that is down has no GIDs."""
    if name := text(port / "gid_attrs/ndevs/0"):
        return name
    nets = device / "device/net"
    of_port = [name for name in names(nets) if (integer(nets / name / "dev_port") or 0) == number - 1]
    return of_port[0] if of_port else text(device / "parent")  # the network device below Soft-RoCE


def _word(path: Path) -> str:
    """`4: ACTIVE` is ACTIVE."""
    return (text(path) or "unknown").rpartition(": ")[2]


def _first_number(path: Path) -> float | None:
    """`400 Gb/sec (4X NDR)` is 400."""
    found = re.match(r"[\d.]+", text(path) or "")
    return float(found.group()) if found else None


def _active_mtu(netdev_mtu: int) -> int | None:
    """The kernel shows no active MTU below /sys; RoCE drivers derive it from the Ethernet MTU like this."""
    return next((mtu for mtu in _IB_MTUS if netdev_mtu - _ROCE_HEADERS >= mtu), None)


def _traffic_class(path: Path) -> int | None:
    """`Global tclass=106`, on the first line (mlx5_ib of MLNX_OFED, traffic_class_show); rules for peers may follow."""
    found = re.match(r"(?:Global tclass=)?(\d+)\b", text(path) or "")
    return int(found.group(1)) if found else None
