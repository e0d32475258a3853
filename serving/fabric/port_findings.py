"""Findings about the NICs of a node: which are missing, slow, or hidden behind something."""

import re

from serving.fabric.findings import Finding, error, note, warning
from serving.fabric.nics import Excluded, Nic
from serving.fabric.node import NodeFabric

_FULL_MTU = 4096  # the largest InfiniBand packet; from an Ethernet MTU of 4192 on (serving/fabric/sysfs.py)


def port_findings(fabric: NodeFabric, used: list[Nic], excluded: list[Excluded], ucx: str) -> list[Finding]:
    if not fabric.devices:
        text = "no RDMA device on this node: /sys/class/infiniband has none"
        return [error("no-rdma", text, "take a node with RDMA NICs, or load their driver (mlx5_ib, ionic_rdma, ...)")]
    if not used:
        reasons = "; ".join(f"{entry.nic.name}: {entry.reason}" for entry in excluded)
        return [error("none-usable", f"no RDMA device is a NIC to use: {reasons}", _fix(excluded))]
    return [
        *_lost(fabric, used, excluded),
        *_foreign(excluded),
        *_fewer_than_gpus(fabric, used),
        *_rates(used),
        *_mtu(used),
        *_vrf(used, ucx),
    ]


def _fix(excluded: list[Excluded]) -> str:
    if any("namespace" in entry.reason for entry in excluded):
        return "run where the network devices are: hostNetwork in a pod; NICs given to a pod are its own"
    if any(entry.reason.startswith("front end") for entry in excluded):
        return "if the front end is the fabric as well, name it: UCX_NET_DEVICES in cluster.nodes.environment"
    if all(entry.why == "foreign" for entry in excluded):
        return "take a node with RDMA NICs"
    return "look at `rdma link`, and at the cables and addresses of the fabric's network devices"


def _lost(fabric: NodeFabric, used: list[Nic], excluded: list[Excluded]) -> list[Finding]:
    """An error where a GPU is left without its NIC; where there are enough others it may be a spare."""
    lost = [entry for entry in excluded if entry.why == "lost"]
    if not lost:
        return []
    say = warning if 0 < len(fabric.gpus.gpus) <= len(used) else error
    each = "; ".join(f"{_named(entry.nic)}: {entry.reason}" for entry in lost)
    return [say("nic-lost", f"NICs of the fabric's kind that do not work: {each}", _fix(lost))]


def _named(nic: Nic) -> str:
    return f"{nic.name} ({nic.port.netdev.name})" if nic.port.netdev else nic.name


def _foreign(excluded: list[Excluded]) -> list[Finding]:
    foreign = [entry for entry in excluded if entry.why == "foreign"]
    each = "; ".join(f"{entry.nic.name}: {entry.reason}" for entry in foreign)
    fix = "if one of them belongs to the fabric, name all of it: UCX_NET_DEVICES in cluster.nodes.environment"
    return [note("not-fabric", f"not the fabric's: {each}", fix)] if foreign else []


def _fewer_than_gpus(fabric: NodeFabric, used: list[Nic]) -> list[Finding]:
    gpus = len(fabric.gpus.gpus)
    if len(used) >= gpus:
        return []
    fix = "expect less KV bandwidth, and ranks that share a NIC; nodes of one stack should have the same"
    return [warning("fewer-nics", f"{len(used)} NICs for {gpus} GPUs", fix)]


def _rates(used: list[Nic]) -> list[Finding]:
    rates = {nic.name: nic.port.rate_gbps or 0 for nic in used}
    fastest = max(rates.values())
    slow = [f"{name} {rate:g}" for name, rate in rates.items() if rate < fastest]
    if not slow:
        return []
    text = f"NICs run at different rates: {', '.join(slow)}, the others {fastest:g} Gb/s"
    return [warning("rates", text, "look at the cable and the switch port: one slow NIC holds up its ranks")]


def _mtu(used: list[Nic]) -> list[Finding]:
    small = [nic for nic in used if nic.roce and (nic.port.active_mtu or 0) < _FULL_MTU]
    if not small:
        return []
    each = ", ".join(f"{_named(nic)} {nic.port.netdev.mtu if nic.port.netdev else 'unknown'}" for nic in small)
    text = f"Ethernet MTU too small for RoCE packets of {_FULL_MTU} bytes: {each}"
    return [warning("mtu", text, "set 4200 or more on the network devices and the switches (DigitalOcean: 4200)")]


def _vrf(used: list[Nic], ucx: str) -> list[Finding]:
    """UCX 1.19.0 began to look at routes, and only at those of the main table; 1.19.1 looks at all (openucx #10922)."""
    vrfs = sorted({nic.port.netdev.vrf for nic in used if nic.port.netdev and nic.port.netdev.vrf})
    if not vrfs:
        return []
    text = f"NICs are in VRFs ({', '.join(vrfs)})"
    fix = "take UCX 1.19.1 or later, or the pinned commit; else UCX_IB_ROCE_REACHABILITY_MODE=all"
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", ucx)
    version = tuple(int(part) for part in found.groups()) if found else None
    if version is None:
        return [note("vrf", f"{text}, and UCX 1.19.0 finds no route to their peers", fix)]
    if version[:2] == (1, 19) and version < (1, 19, 1):
        return [error("vrf", f"{text}, and UCX {ucx} finds no route to their peers", fix)]
    return []
