"""Network devices beside the RDMA devices: state, MTU, VRF, and which of them is the node's front end."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from serving.fabric.files import integer, link_name, names, text

_IFF_NOARP, _IFF_MASTER = 0x80, 0x400  # include/uapi/linux/if.h
_RTF_REJECT = 0x200  # include/uapi/linux/route.h
_ROUTE_FIELDS, _ROUTE6_FIELDS = 8, 10  # columns in use of /proc/net/route and /proc/net/ipv6_route


class NetDevice(BaseModel):
    """operstate: up, down, unknown, ... mtu: bytes. master: bond, bridge or VRF it is in. vrf: the master, if a VRF.

    front_end: it, or a bond, VLAN or bridge above it, carries the node's default route.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    operstate: str | None = None
    mtu: int | None = None
    master: str | None = None
    vrf: str | None = None
    front_end: bool = False


def read_netdev(root: Path, name: str, default_route: frozenset[str]) -> NetDevice | None:
    """The network device `name` below `root`; None when it is not there (down to another network namespace).

    default_route: what `default_route_devices` says.
    """
    folder = root / "sys/class/net" / name
    if not folder.is_dir():
        return None
    master = link_name(folder / "master")
    return NetDevice(
        name=name,
        operstate=text(folder / "operstate"),
        mtu=integer(folder / "mtu"),
        master=master,
        vrf=master if master and _is_vrf(root / "sys/class/net" / master) else None,
        front_end=bool(_with_those_above(root, name) & default_route),
    )


def _is_vrf(folder: Path) -> bool:
    """A VRF has no DEVTYPE in its uevent; its flags tell (drivers/net/vrf.c vrf_dev_init); a bond is no NOARP."""
    wanted = _IFF_MASTER | _IFF_NOARP
    return (integer(folder / "flags") or 0) & wanted == wanted


def _with_those_above(root: Path, name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        device = waiting.pop()
        if device not in found:
            found.add(device)
            above = names(root / "sys/class/net" / device)
            waiting += [entry.removeprefix("upper_") for entry in above if entry.startswith("upper_")]
    return found


def default_route_devices(root: Path) -> frozenset[str]:
    """Network devices of the default route that packets take, of IPv4, or of IPv6 on a node without IPv4.

    Only the routes of the lowest metric: a NIC of the fabric may have a default route that nothing uses. Devices in
    VRFs do not count: /proc/net/ipv6_route shows the tables of VRFs as well (net/ipv6/route.c), /proc/net/route only
    the main one.
    """
    ipv4 = [
        (int(metric), device)
        for device, destination, _, _, _, _, metric, mask, *_ in _rows(root / "proc/net/route", _ROUTE_FIELDS)
        if destination == mask == "00000000"
    ]
    ipv6 = [
        (int(row[5], 16), row[9])
        for row in _rows(root / "proc/net/ipv6_route", _ROUTE6_FIELDS)
        if set(row[0]) == {"0"} and row[1] == "00" and not int(row[8], 16) & _RTF_REJECT and not _in_vrf(root, row[9])
    ]
    routes = ipv4 or ipv6
    return frozenset(device for metric, device in routes if metric == min(routes)[0])


def _rows(path: Path, fields: int) -> list[list[str]]:
    rows = [line.split() for line in (text(path) or "").splitlines() if not line.startswith("Iface")]
    return [row for row in rows if len(row) >= fields]


def _in_vrf(root: Path, name: str) -> bool:
    master = link_name(root / "sys/class/net" / name / "master")
    return bool(master) and _is_vrf(root / "sys/class/net" / str(master))
