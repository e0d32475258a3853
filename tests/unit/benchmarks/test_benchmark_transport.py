"""Over what the KV went: what UCX was allowed, what the NICs counted, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_metrics import proof_of
from stand_in_data import request, scenario_data, target_data
from stand_in_nics import DECODE, PREFILL, RC, carried

from benchmarks.evidence import KvProof
from benchmarks.nic_counters import NicBytes
from benchmarks.scenario import Scenario
from benchmarks.summary import summarize
from benchmarks.target import Target
from benchmarks.transfer import Transfers
from benchmarks.transport import ADD_EXPORTERS, Transport, judge
from benchmarks.validity import Finding, Seen, check_rate
from serving.platforms import PLATFORMS

KV = 1_000_000


def reads(transports: str, node: str = DECODE) -> list[Transfers]:
    return [Transfers(replica="d", node=node, transports=transports, transfers=4, bytes=KV)]


def target(platform: str = "rocm", **fabric: Any) -> Target:
    data = target_data("http://127.0.0.1:9", fabric=fabric or None)
    data["deployment"]["platform"] = platform
    return Target.model_validate(data)


def label(transports: str, nics: NicBytes | None = None, prefill: str = PREFILL, platform: str = "rocm") -> Transport:
    return judge(target(platform), reads(transports), [prefill], nics)


def test_tcp_alone_is_tcp() -> None:
    found = label("tcp,self", platform="cpu")
    assert (found.label, found.outcome) == ("tcp", "note")
    assert found.reason == "UCX_TLS=tcp,self in decode's engines leaves TCP, no RDMA"
    assert found.gate is None


def test_what_each_platform_lets_ucx_use_decides_what_can_be_said() -> None:
    """Two replicas on one node, as a rehearsal has them: KV that may go through memory is not shown to go over TCP."""
    found = {
        name: judge(target(name), reads(platform.environment["UCX_TLS"], node="n"), ["n"], None).label
        for name, platform in PLATFORMS.items()
    }
    assert found == {"cpu": "tcp", "rocm": "unknown", "cuda": "unknown"}


def test_tcp_and_shared_memory_are_tcp_only_between_nodes() -> None:
    assert label("tcp,sm,self", platform="cpu").label == "tcp"
    together = label("tcp,sm,self", prefill=DECODE, platform="cpu")
    assert (together.label, together.outcome) == ("unknown", "note")
    assert "TCP or memory of the node" in together.reason


def test_the_recorded_run_shared_a_node_and_may_have_used_its_memory() -> None:
    """And did: on one host UCX reads through the kernel (cma) where it is allowed `sm`."""
    proof = proof_of("proven")
    nodes = proof.tokens.prefill_nodes if proof.tokens else []
    assert judge(target("cpu"), proof.transfers, nodes, None).label == "unknown"
    alone = [part.model_copy(update={"transports": "tcp,self"}) for part in proof.transfers]
    assert judge(target("cpu"), alone, nodes, None).label == "tcp"


def test_an_engine_that_does_not_say_leaves_everything_open() -> None:
    assert label("").label == label("", platform="cpu").label == "unknown"


@pytest.mark.parametrize("transports", [RC, "all", "ib,tcp", "rc_mlx5,tcp", "ud_x,self"])
def test_rdma_that_was_allowed_is_not_rdma_that_was_used(transports: str) -> None:
    found = label(transports)
    assert (found.label, found.outcome) == ("unknown", "note")
    assert ADD_EXPORTERS in found.reason


@pytest.mark.parametrize(
    ("transports", "nics", "expected"),
    [
        (RC, carried(KV + 9000), ("rdma", "ok")),
        (RC, carried(KV - 9000), ("unknown", "note")),
        (RC, carried(0, other=2 * KV), ("unknown", "note")),  # UCX could not have used TCP
        ("rc,tcp", carried(8000, kernel=2 * KV), ("tcp", "fault")),
        ("rc,tcp", carried(0, other=2 * KV), ("tcp", "fault")),
        ("rc,tcp", carried(2 * KV, other=2 * KV), ("unknown", "note")),
        ("rc,tcp", carried(2 * KV), ("rdma", "ok")),
        ("tcp,self", carried(2 * KV), ("tcp", "fault")),  # somebody else's RDMA
        ("sm,self", carried(2 * KV), ("unknown", "note")),  # UCX could not have used RDMA
        ("^tcp", carried(2 * KV, kernel=2 * KV), ("rdma", "ok")),
        ("^rc,sm,tcp", carried(0, kernel=2 * KV), ("unknown", "note")),
        ("^ib", carried(2 * KV, kernel=2 * KV), ("tcp", "fault")),
        (RC, NicBytes(problem="a node was restarted"), ("unknown", "note")),
    ],
)
def test_nics_must_have_carried_at_least_the_kv(transports: str, nics: NicBytes, expected: tuple[str, str]) -> None:
    found = label(transports, nics)
    assert (found.label, found.outcome) == expected


def test_rdma_that_another_node_received_is_not_decode_s() -> None:
    """The decode node's own NICs, which were asked, counted nothing."""
    elsewhere = carried(2 * KV, to="10.0.0.7")
    still = [nic.model_copy(update={"node": f"{DECODE}:9100", "rdma_received": 0}) for nic in elsewhere.nics]
    found = label(RC, NicBytes(nics=[*elsewhere.nics, *still]))
    assert (found.label, found.outcome) == ("unknown", "note")
    assert "decode's nodes received 0 bytes by RDMA" in found.reason


def test_kernel_bytes_of_another_node_are_not_decode_s() -> None:
    elsewhere = carried(0, other=2 * KV, to="10.0.0.7")
    both = NicBytes(nics=[*elsewhere.nics, *carried(0).nics], received_elsewhere=elsewhere.received_elsewhere)
    assert label("rc,tcp", both).label == "unknown"


def test_each_decode_node_has_to_have_received_its_own_part() -> None:
    parts = [*reads(RC), *reads(RC, node="10.0.0.3")]
    one, other = carried(2 * KV), carried(KV, to="10.0.0.3")
    both = NicBytes(nics=[*one.nics, *other.nics])
    assert judge(target(), parts, [PREFILL], both).label == "rdma"
    lame = NicBytes(nics=[*one.nics, *carried(KV // 2, to="10.0.0.3").nics])
    assert judge(target(), parts, [PREFILL], lame).label == "unknown", "2.5 of 2 parts came in, all in all"


@pytest.mark.parametrize("node", ["10.0.0.9", ""])
def test_a_decode_node_that_no_exporter_told_of_is_named(node: str) -> None:
    found = judge(target(), reads(RC, node=node), [PREFILL], carried(2 * KV))
    assert found.label == "unknown"
    assert f"no node-exporter counted at decode's node {node or 'one that is not told'}" in found.reason


def test_without_kv_there_is_no_path() -> None:
    found = judge(target(), [], [], carried(KV))
    assert (found.label, found.outcome) == ("unknown", "note")


def findings(transport: Transport) -> dict[str, Finding]:
    scenario = Scenario.model_validate(scenario_data())
    sent = [request(n) for n in range(31)]
    proof = KvProof(verdict="proven", reasons=[], requests=31, counted_bytes=KV, foreign_requests=0)
    proof.transport = transport
    return {f.id: f for f in check_rate(Seen(scenario, summarize(scenario, 1.0, sent), sent, proof, 0))}


@pytest.mark.parametrize(
    ("fabric", "outcome", "said"),
    [
        (
            {"gate": "passed", "reason": "rc_mlx5, 27 GB/s"},
            "ok",
            "the RDMA gate passed before serving (rc_mlx5, 27 GB/s)",
        ),
        (
            {"gate": "off", "reason": "fabric.gate"},
            "note",
            "RDMA not proven before serving: the gate was off (fabric.gate)",
        ),
        ({"gate": "warned", "reason": "slow"}, "note", "RDMA not proven before serving: the gate found fault (slow)"),
        ({"gate": "none"}, "note", "RDMA not proven before serving: no gate ran"),
        ({}, "note", "RDMA not proven before serving: no gate ran (the target says nothing of one)"),
    ],
)
def test_every_rate_says_what_the_gate_said(fabric: dict[str, str], outcome: str, said: str) -> None:
    found = findings(judge(target(**fabric), reads(RC), [], None))
    assert (found["rdma-gate"].outcome, found["rdma-gate"].sentence) == (outcome, said)


def test_a_platform_without_rdma_needs_no_gate() -> None:
    assert "rdma-gate" not in findings(judge(target("cpu", gate="none"), reads("tcp,self"), [], None))


def test_kv_over_tcp_where_there_is_rdma_is_a_fault() -> None:
    found = findings(label("rc,tcp", carried(0, kernel=2 * KV)))
    assert found["transport"].outcome == "fault"
    assert found["transport"].sentence.startswith("KV over TCP: ")


def test_one_nic_that_does_all_is_said() -> None:
    assert findings(label(RC, carried(2 * KV)))["nics"].outcome == "ok"
    uneven = carried(2 * KV)
    uneven.nics[-1].rdma_received *= 9
    found = findings(label(RC, uneven))["nics"]
    assert found.outcome == "note"
    assert "least to most: 0.11 (fabric0 250,000, fabric7 2,250,000 on 10.0.0.2:9100)" in found.sentence
