"""Which ports are the fabric's NICs, and why the others are not."""

from dataclasses import dataclass
from typing import Literal

from serving.fabric.gids import ROCE_V2, fabric_index
from serving.fabric.node import NodeFabric
from serving.fabric.sysfs import RdmaDevice, RdmaPort

# foreign: never meant for the fabric. lost: of the fabric's own kind, and does not work.
Why = Literal["foreign", "lost"]


@dataclass(frozen=True)
class Nic:
    """A port with its device."""

    device: RdmaDevice
    port: RdmaPort

    @property
    def name(self) -> str:
        """As UCX_NET_DEVICES wants it: `mlx5_0:1`."""
        return f"{self.device.name}:{self.port.number}"

    @property
    def kind(self) -> tuple[str | None, ...]:
        """What the NICs of one fabric have in common: maker and model, physical or virtual, Ethernet or InfiniBand."""
        return (self.device.vendor, self.device.device, self.device.function, self.port.link_layer)

    @property
    def roce(self) -> bool:
        return self.port.link_layer == "Ethernet"

    @property
    def gid_index(self) -> int | None:
        """Of the address that reaches other nodes; None over InfiniBand, and without such an address."""
        return fabric_index(self.port.gids, self.port.netdev and self.port.netdev.name) if self.roce else None


@dataclass(frozen=True)
class Excluded:
    """A port that is not used."""

    nic: Nic
    why: Why
    reason: str


def divide(fabric: NodeFabric) -> tuple[list[Nic], list[Excluded]]:
    """The NICs to use, in the order of their names, and all other ports with the reason."""
    used: list[Nic] = []
    excluded: list[Excluded] = []
    for nic in (Nic(device, port) for device, port in fabric.ports):
        if found := _foreign(nic):
            excluded.append(Excluded(nic, "foreign", found))
        elif found := _not_working(nic):
            excluded.append(Excluded(nic, "lost", found))
        else:
            used.append(nic)
    used = _without(used, excluded, _slower_model(used), "foreign")
    used = _without(used, excluded, _unaddressed(used), "lost")
    # A port that is down is a loss only where its likes work: DigitalOcean's lab nodes have four dead ports beside the
    # fabric's NICs (mlx5_16..19), physical functions where those are virtual ones.
    kinds = {nic.kind for nic in used}
    excluded = [
        Excluded(entry.nic, "foreign", entry.reason) if kinds and entry.nic.kind not in kinds else entry
        for entry in excluded
    ]
    return used, excluded


def _foreign(nic: Nic) -> str | None:
    if nic.device.software:
        return f"software ({nic.device.driver}), no NIC"
    if nic.device.iwarp:
        return "iWARP, neither RoCE nor InfiniBand"
    if nic.port.netdev and nic.port.netdev.front_end:
        return f"front end: {nic.port.netdev.name} carries the default route"
    if nic.port.link_layer not in ("Ethernet", "InfiniBand"):
        return f"link layer {nic.port.link_layer}"
    return None


def _not_working(nic: Nic) -> str | None:
    port = nic.port
    if not port.active:
        return f"port is {port.state} ({port.phys_state})"
    if not nic.roce:
        return None
    if port.netdev is None:
        return "its network device is in another network namespace"
    if port.netdev.operstate == "down":
        return f"{port.netdev.name} is down"
    if not any(gid.type == ROCE_V2 for gid in port.gids):
        return "no RoCE v2 address"
    return None


def _slower_model(nics: list[Nic]) -> dict[str, str]:
    """Ports of another model than the fastest, and slower: a NIC for storage or for a private network.

    A slower port of the same model is a fabric NIC with a bad link, and stays.
    """
    fastest = max((nic.port.rate_gbps or 0 for nic in nics), default=0)
    models = {nic.kind for nic in nics if (nic.port.rate_gbps or 0) == fastest}
    return {
        nic.name: f"another model, {nic.port.rate_gbps or 0:g} of {fastest:g} Gb/s"
        for nic in nics
        if nic.kind not in models
    }


def _unaddressed(nics: list[Nic]) -> dict[str, str]:
    """Where some have an address that reaches other nodes, those that have none are not working."""
    roce = [nic for nic in nics if nic.roce]
    without = [nic for nic in roce if nic.gid_index is None]
    return {nic.name: "only a link-local address" for nic in without} if len(without) < len(roce) else {}


def _without(nics: list[Nic], excluded: list[Excluded], reasons: dict[str, str], why: Why) -> list[Nic]:
    excluded += [Excluded(nic, why, reasons[nic.name]) for nic in nics if nic.name in reasons]
    return [nic for nic in nics if nic.name not in reasons]
