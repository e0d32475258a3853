"""The table "How the KV moved": a verdict and a reason for every piece of evidence, measured or not."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from recorded_metrics import SENT, SHORT_AND_LONG, proof_of
from stand_in_data import target_data
from stand_in_nics import RC
from stand_in_nics import carried as carried_to

from benchmarks.evidence import KvProof
from benchmarks.how_kv_moved import Evidence, evidence
from benchmarks.nic_counters import NicBytes
from benchmarks.target import Target
from benchmarks.transport import judge

PLAIN = "tcp,self"
# To the node of the recording's decode.
carried = partial(carried_to, to="127.0.0.2")


def table(
    name: str, platform: str = "cpu", transports: str = PLAIN, nics: NicBytes | None = None
) -> dict[str, Evidence]:
    """The evidence of a recorded run, on a platform, with what UCX was allowed and the NICs counted."""
    proof = proof_of(name, SHORT_AND_LONG if name == "block-sizes" else SENT)
    for part in proof.transfers:
        part.transports = transports
    return of(proof, platform, nics)


def of(proof: KvProof, platform: str = "cpu", nics: NicBytes | None = None) -> dict[str, Evidence]:
    data: dict[str, Any] = target_data("http://127.0.0.1:9")
    data["deployment"]["platform"] = platform
    assert proof.tokens is not None
    proof.transport = judge(Target.model_validate(data), proof.transfers, ["127.0.0.3"], nics)
    return {piece.name: piece for piece in evidence(proof, proof.tokens)}


def test_a_proven_run_over_tcp() -> None:
    found = table("proven")
    assert {name: piece.verdict for name, piece in found.items() if piece.outcome == "ok"} == {
        "KV bytes": "equal",
        "transfers": "complete",
        "decode's prompt tokens by source": "received",
        "failed transfers": "none",
        "failed notifications": "none",
        "expired KV blocks": "none",
        "descriptors": "counted",
        "post time": "counted",
        "transfer time": "counted",
        "speed": "counted",
        "each decode replica": "counted",
        "transfers as vLLM counts them": "equal",
        "by prefill replica": "counted",
        "NIC counters": "not applicable",
    }
    assert found["KV bytes"].value == "9,437,184 of 9,437,184"
    assert found["decode's prompt tokens by source"].value == (
        "9,216 from prefill, 0 from its own prefix cache, 36 computed"
    )
    assert "prompt_tokens_by_source" in found["decode's prompt tokens by source"].reason
    assert (found["descriptors"].value, found["post time"].value) == ("8.0 a transfer", "2.25 ms a transfer")
    assert found["speed"].value == "117 MB/s"
    assert found["by prefill replica"].value == "shg8wxgw: 9,216 prompt tokens"
    assert (found["path"].value, found["path"].verdict, found["path"].outcome) == ("TCP", "no RDMA", "note")


@pytest.mark.parametrize(
    ("recording", "piece", "verdict"),
    [
        ("recomputed", "decode's prompt tokens by source", "recomputed by decode"),
        ("recomputed", "KV bytes", "no KV moved"),
        ("expired", "expired KV blocks", "expired leases"),
        ("failed", "failed transfers", "failed transfers"),
        ("failed", "failed notifications", "failed notifications"),
        ("failed", "transfers", "transfers missing"),
        ("block-sizes", "KV bytes", "unequal block sizes"),
    ],
)
def test_what_is_wrong_is_said_where_it_belongs(recording: str, piece: str, verdict: str) -> None:
    found = table(recording)[piece]
    assert (found.verdict, found.outcome) == (verdict, "fault")
    assert len(found.reason) > 20


def test_several_prefill_replicas_cannot_be_told_apart_by_bytes() -> None:
    proof = proof_of("proven")
    assert proof.tokens is not None
    proof.tokens.prefill = {"p1": 4000, "p2": 5216}
    found = of(proof)["by prefill replica"]
    assert (found.value, found.verdict, found.outcome) == (
        "p1: 4,000 prompt tokens; p2: 5,216 prompt tokens",
        "bytes not measured",
        "note",
    )
    proof.tokens.prefill = {"p1": 9216, "d that received nothing": 256}
    assert of(proof)["by prefill replica"].verdict == "does not add up"
    assert table("recomputed")["by prefill replica"].verdict == "not known"


def test_counters_that_are_not_exported_are_not_measured() -> None:
    proof = proof_of("proven")
    assert proof.vllm_transfers == 36
    proof.vllm_transfers = 35
    assert of(proof)["transfers as vLLM counts them"].verdict == "differs"
    proof.vllm_transfers = None
    assert of(proof)["transfers as vLLM counts them"].verdict == "not measured"
    proof.transfers[0].post_s = None
    assert (of(proof)["post time"].verdict, of(proof)["post time"].outcome) == ("not measured", "note")


def test_without_nic_counters_the_table_says_what_to_do() -> None:
    found = table("proven", platform="rocm", transports=RC)
    assert (found["path"].value, found["path"].verdict) == ("–", "not known")
    assert found["NIC counters"].verdict == "not measured"
    assert "node_exporter_urls" in found["NIC counters"].reason
    assert found["RDMA gate"].verdict == "not proven"
    broken = table("proven", platform="rocm", transports=RC, nics=NicBytes(problem="a node was restarted"))
    assert broken["NIC counters"].reason == "a node was restarted"


def test_nic_counters_show_rdma_its_share_and_its_evenness() -> None:
    found = table("proven", platform="rocm", transports=RC, nics=carried(9_600_000))
    assert (found["path"].value, found["path"].verdict) == ("RDMA", "shown")
    assert found["NIC bytes"].value == "9,600,000 RDMA bytes for 9,437,184 of KV"
    assert found["RDMA share"].verdict == "not measured"  # one node shows no kernel bytes
    assert (found["evenness"].value, found["evenness"].verdict) == ("1.00", "even")
    both = carried(9_600_000, kernel=400_000)
    for nic in both.nics:
        nic.kernel_received = nic.kernel_received or 0
    assert table("proven", "rocm", RC, both)["RDMA share"].value == "96.0 % RDMA, 4.0 % TCP and other kernel traffic"
    few = table("proven", "rocm", RC, carried(8000))
    assert (few["NIC bytes"].verdict, few["path"].verdict) == ("too few", "not known")
    assert few["evenness"].verdict == "not measured"


def test_bytes_of_nodes_that_read_nothing_are_not_shown_as_the_kv_s() -> None:
    mine, other = carried(8000), carried(20_000_000, to="10.0.0.9")
    found = table("proven", "rocm", RC, NicBytes(nics=[*mine.nics, *other.nics]))["NIC bytes"]
    assert (found.value, found.verdict) == ("8,000 RDMA bytes for 9,437,184 of KV", "too few")


def test_kv_over_tcp_on_rdma_nodes_is_a_fault_in_the_table() -> None:
    found = table("proven", "rocm", "rc,tcp", carried(0, kernel=20_000_000))
    assert (found["path"].value, found["path"].verdict, found["path"].outcome) == ("TCP", "not RDMA", "fault")
