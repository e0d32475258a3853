"""The KV proof holds for an honest service and fails, with the reason, for every dishonest one."""

from __future__ import annotations

import pytest
from stand_in_client import ask
from stand_in_data import BYTES_PER_TOKEN, aggregated
from stand_in_server import StandIn

from benchmarks.evidence import TRANSFERS, KvProof, all_counted, prompt_bytes, prove_kv
from benchmarks.metrics import Counters, parse, scrape
from benchmarks.target import Target

# 1 token, under a block, exactly one block, one more, several.
LENGTHS = (1, 15, 16, 17, 64, 100)
WHOLE_BLOCKS = 16 + 16 + 16 + 32 + 64 + 112


def measure(target: Target, lengths: tuple[int, ...] = LENGTHS) -> KvProof:
    """Send requests between two scrapes and hold the counters against them."""
    before = scrape(target.metrics_urls)
    sent = ask(target.url, lengths)
    return prove_kv(target, sent, scrape(target.metrics_urls).since(before))


def test_an_honest_service_is_proven_to_the_byte(target: Target) -> None:
    proof = measure(target)
    assert proof.verdict == "proven", proof.reasons
    assert proof.counted_bytes == proof.expected_bytes == WHOLE_BLOCKS * BYTES_PER_TOKEN
    assert proof.counted_transfers == len(LENGTHS)
    assert proof.foreign_requests == 0


def test_only_the_interval_counts(target: Target) -> None:
    measure(target)
    assert measure(target).verdict == "proven"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("export_kv", False, "reports no KV transfer at all"),
        ("kv_factor", 0.5, "KV bytes moved"),
        ("kv_factor", 1.001, "KV bytes moved"),
        ("decode_computes", 0.5, "decode computed"),
        ("decode_computes", 1.0, "no engine reports prompt tokens received"),
        ("failed_transfers", 2, "2 failed transfers"),
        ("foreign_requests", 3, "foreign traffic: the service moved KV for 3 more requests"),
        ("error_every", 3, "2 of 6 answers carry no token count"),
    ],
)
def test_a_dishonest_service_is_found_out(
    service: StandIn, target: Target, name: str, value: float, reason: str
) -> None:
    setattr(service.behaviour, name, value)
    proof = measure(target)
    assert proof.verdict == "failed"
    assert any(reason in given for given in proof.reasons), proof.reasons


def test_foreign_traffic_is_counted(service: StandIn, target: Target) -> None:
    service.behaviour.foreign_requests = 3
    assert measure(target).foreign_requests == 3


def test_a_restarted_replica_is_named(target: Target) -> None:
    sent = ask(target.url, LENGTHS)
    now = scrape(target.metrics_urls)
    before = Counters({series: value + 1000 for series, value in now.values.items() if series[0] == TRANSFERS})
    proof = prove_kv(target, sent, now.since(before))
    assert any("restarted" in reason for reason in proof.reasons)


def test_what_decode_had_cached_is_not_expected_again(service: StandIn, target: Target) -> None:
    before = scrape(target.metrics_urls)
    sent = ask(target.url, (64,))
    text = service.exposition() + (
        "# TYPE ray_vllm_prefix_cache_hits_total counter\n"
        'ray_vllm_prefix_cache_hits_total{ReplicaId="decode-0",model_name="stand-in-model"} 32\n'
    )
    proof = prove_kv(target, sent, parse(text).since(before))
    assert proof.expected_bytes == 32 * BYTES_PER_TOKEN


def test_tensor_parallel_decode_transfers_once_per_rank(target: Target) -> None:
    wide = target.model_copy(deep=True)
    wide.deployment.engine["decode"]["tensor_parallel_size"] = 8
    proof = measure(wide)
    assert proof.expected_transfers == 8 * len(LENGTHS)
    assert proof.verdict == "failed"  # the stand-in makes one transfer per request


def test_aggregated_needs_no_proof_but_sees_foreign_traffic(service: StandIn) -> None:
    target = Target.model_validate(aggregated(service.url))
    service.behaviour.foreign_requests = 2
    before = scrape(target.metrics_urls)
    sent = ask(service.url, LENGTHS)
    delta = scrape(target.metrics_urls).since(before)
    proof = prove_kv(target, sent, delta)
    assert (proof.verdict, proof.foreign_requests) == ("not applicable", 2)
    assert all_counted(target, sent, delta)


def test_whole_blocks_are_moved() -> None:
    # Eight prompts measured with the real stack (vLLM 0.18, block 128, 1,024 bytes a token).
    lengths = (1, 50, 127, 128, 129, 256, 300, 700)
    assert sum(prompt_bytes(length, 128, 1024) for length in lengths) == 2_228_224
