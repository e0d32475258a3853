"""The GID table of an RDMA port: which of its addresses UCX takes by itself, and which one reaches other nodes."""

from collections.abc import Iterable
from ipaddress import IPv6Address
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from serving.fabric.files import names, text

Scope = Literal["ipv4", "ula", "global", "link-local"]
ROCE_V2 = "RoCE v2"


class Gid(BaseModel):
    """One address of a port. type: the kernel's words (`IB/RoCE v1`, `RoCE v2`). netdev: whose address it is."""

    model_config = ConfigDict(frozen=True)

    index: int
    address: str
    type: str
    scope: Scope
    netdev: str | None = None

    @property
    def routable(self) -> bool:
        """RoCE v2 with an address that other nodes can be reached from.

        A unique local address (fc00::/7) counts: DigitalOcean's fabric has no other (fd02::/16, lab record), and
        whether a fabric routes it is the fabric's business. A link-local one reaches one Ethernet segment.
        """
        return self.type == ROCE_V2 and self.scope != "link-local"


def read_gids(port: Path) -> tuple[Gid, ...]:
    """The slots that hold an address, of a folder `/sys/class/infiniband/DEVICE/ports/PORT`."""
    gids: list[Gid] = []
    for name in names(port / "gids"):
        address = _address(text(port / "gids" / name))
        if address is None or not name.isdigit():
            continue
        attributes = port / "gid_attrs"
        gids.append(
            Gid(
                index=int(name),
                address=f"::ffff:{address.ipv4_mapped}" if address.ipv4_mapped else str(address),
                type=text(attributes / "types" / name) or "unknown",
                scope=_scope(address),
                netdev=text(attributes / "ndevs" / name),
            )
        )
    return tuple(gids)


def _address(written: str | None) -> IPv6Address | None:
    try:
        address = IPv6Address(written or "::")
    except ValueError:
        return None
    return address if int(address) else None


def _scope(address: IPv6Address) -> Scope:
    if address.ipv4_mapped:
        return "link-local" if address.ipv4_mapped.is_link_local else "ipv4"
    if address.is_link_local:
        return "link-local"
    return "ula" if address.packed[0] & 0xFE == 0xFC else "global"  # RFC 4193: fc00::/7


def ucx_auto_index(gids: Iterable[Gid]) -> int:
    """What the pinned UCX takes for `UCX_IB_GID_INDEX=auto`.

    The first RoCE v2 address over IPv4, then the first one over IPv6, then v1 alike, else 0 (ucx: ib_device.c,
    uct_ib_device_select_gid). The first over IPv6 is the link-local one wherever there is no IPv4. openucx #10939
    (merged after the pinned commit) skips link-local addresses first; an index that is set serves both.
    """
    table = list(gids)
    for version in (ROCE_V2, "IB/RoCE v1"):
        for over_ipv4 in (True, False):
            for gid in table:
                if gid.type == version and gid.address.startswith("::ffff:") == over_ipv4:
                    return gid.index
    return 0


def fabric_index(gids: Iterable[Gid], netdev: str | None) -> int | None:
    """The address to use: routable, of the port's own network device before those above it (VLANs), IPv4 first as UCX.

    None when the port has no routable address.
    """
    candidates = [gid for gid in gids if gid.routable]
    candidates.sort(key=lambda gid: (gid.netdev not in (netdev, None), gid.scope != "ipv4", gid.index))
    return candidates[0].index if candidates else None
