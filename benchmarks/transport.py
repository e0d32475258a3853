"""Over what did the KV go: RDMA, TCP, or is it not known? And how is that known?

A transfer that was counted says nothing of its path. Two things do: what the decode engines let UCX use (their UCX_TLS,
on every counter they export), which can exclude a path, and the bytes that the NICs of the nodes counted meanwhile,
which can show one. A gate that passed before serving is no evidence of what happened under load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from benchmarks.nic_counters import NicBytes
from benchmarks.target import Fabric, Target
from benchmarks.transfer import Transfers
from serving.ucx_transports import RDMA, TCP, WITHIN_NODE, allowed

# A choice. Ranks move the same bytes, so a node whose ranks have a NIC each is near 1; the known faults (all over one
# NIC, four of eight: openucx 11259 and 11680) are at 0.
EVEN = 0.5
# A node that carried less of the KV than this is not judged: its NICs saw requests and acknowledgements.
SMALL_PART = 0.01
ADD_EXPORTERS = "give the target `node_exporter_urls` or `node_exporter_service`"


class Transport(BaseModel):
    """`label`: the path of the KV. `outcome`: `fault` when KV went over TCP where there is RDMA to use; `note`: say so
    when quoting the numbers. `reason`: the evidence for the label. `nics` is None when no node-exporter was asked.
    `gate` is what the RDMA gate said before serving; None where no RDMA is to be expected.
    """

    label: Literal["rdma", "tcp", "unknown"]
    outcome: Literal["ok", "note", "fault"]
    reason: str
    nics: NicBytes | None = None
    gate: Fabric | None = None


@dataclass(frozen=True)
class Evenness:
    """`ratio`: bytes of a node's emptiest RDMA NIC over those of its fullest, where that is worst; 0 to 1."""

    ratio: float
    even: bool
    sentence: str


@dataclass(frozen=True)
class _Allowed:
    """What the decode engines let UCX use; everything where one does not say. `text` says so."""

    rdma: bool
    tcp: bool
    within_node: bool
    text: str


def judge(target: Target, reads: Sequence[Transfers], prefill_nodes: Sequence[str], nics: NicBytes | None) -> Transport:
    """The path of one rate's KV. `reads` are those of each decode replica, `prefill_nodes` addresses of nodes."""
    counted = sum(part.bytes for part in reads)
    left = _allowed(reads, prefill_nodes)
    if not counted:
        label, reason = "unknown", "no KV was counted, so it took no path"
    elif left.tcp and not left.rdma and not left.within_node:
        label, reason = "tcp", f"{left.text}, no RDMA"
    elif nics is None:
        label, reason = "unknown", f"{left.text}; NIC counters not measured: {ADD_EXPORTERS}"
    elif nics.problem:
        label, reason = "unknown", f"{left.text}; NIC counters not measured: {nics.problem}"
    else:
        label, reason = _by_nics(reads, nics, left)
    outcome = "ok" if label == "rdma" else "note"
    if label == "tcp" and target.deployment.platform != "cpu":
        outcome = "fault"
    return Transport(label=label, outcome=outcome, reason=reason, nics=nics, gate=_gate(target))


def evenness(nics: NicBytes, counted: int) -> Evenness | None:
    """How evenly the NICs of a node shared `counted` KV bytes; None when no node with several NICs carried any."""
    worst = nics.most_uneven(ignored=SMALL_PART * counted)
    if worst is None:
        return None
    ratio, least, most = worst
    sentence = (
        f"RDMA bytes over the NICs of a node, least to most: {ratio:.2f} "
        f"({least.device} {least.rdma:,}, {most.device} {most.rdma:,} on {least.node})"
    )
    return Evenness(ratio, ratio >= EVEN, sentence)


def carried_by_rdma(reads: Sequence[Transfers], nics: NicBytes) -> bool:
    """Whether the NICs of every node that read KV received at least as many RDMA bytes as it read.

    Headers come on top. Bytes of other nodes are somebody else's: KV goes to the node that reads it.
    """
    return all(nics.of([node]).rdma_received >= due for node, due in _due(reads).items())


def _due(reads: Sequence[Transfers]) -> dict[str, int]:
    """Address of a node that read KV -> how many bytes of it."""
    due: dict[str, int] = {}
    for part in reads:
        due[part.node] = due.get(part.node, 0) + part.bytes
    return due


def _gate(target: Target) -> Fabric | None:
    if target.fabric and target.fabric.gate != "none":
        return target.fabric
    if target.deployment.platform == "cpu":
        return None
    return target.fabric or Fabric(gate="none", reason="the target says nothing of one")


def _by_nics(
    reads: Sequence[Transfers], nics: NicBytes, left: _Allowed
) -> tuple[Literal["rdma", "tcp", "unknown"], str]:
    due = _due(reads)
    if unseen := [node or "one that is not told" for node in due if not nics.of([node]).nics]:
        return "unknown", f"{left.text}; no node-exporter counted at decode's node {', '.join(unseen)}"
    there = nics.of(due)
    reason = (
        f"{left.text}; decode's nodes received {there.rdma_received:,} bytes by RDMA and {there.by_kernel:,} "
        f"through the kernel, for {sum(due.values()):,} KV bytes"
    )
    by_rdma = left.rdma and carried_by_rdma(reads, nics)
    by_tcp = left.tcp and all(nics.of([node]).by_kernel >= count for node, count in due.items())
    if by_rdma and not by_tcp:
        return "rdma", reason
    if by_tcp and not by_rdma:
        return "tcp", reason
    if by_rdma:
        return "unknown", f"{reason}: either may have carried it"
    return "unknown", f"{reason}: too few on one of them, so KV stayed within a node or went another way"


def _allowed(reads: Sequence[Transfers], prefill_nodes: Sequence[str]) -> _Allowed:
    """It can exclude a path and never show that one was taken."""
    said = sorted({part.transports for part in reads})
    if "" in said:
        return _Allowed(True, True, True, "a decode engine does not say what UCX may use")
    names = frozenset[str]().union(*(allowed(text) for text in said))
    rdma, tcp, local = bool(names & RDMA), bool(names & TCP), bool(names & WITHIN_NODE)
    decode_nodes = {part.node for part in reads}
    apart = bool(prefill_nodes) and "" not in {*decode_nodes, *prefill_nodes} and not decode_nodes & {*prefill_nodes}
    kinds = {"RDMA": rdma, "TCP": tcp, "memory of the node": local and not apart}
    paths = [kind for kind, there in kinds.items() if there]
    text = f"UCX_TLS={' and '.join(said)} in decode's engines leaves {' or '.join(paths) or 'no path that is known'}"
    return _Allowed(rdma, tcp, local and not apart, text + (" between nodes" if local and apart else ""))
