"""The KV proof holds for an honest service and fails, with the reason, for every dishonest one."""

from __future__ import annotations

import pytest
from stand_in_client import ask
from stand_in_data import BYTES_PER_TOKEN, aggregated, target_data
from stand_in_server import StandIn

from benchmarks.evidence import TRANSFERS, KvProof, all_counted, prove_kv
from benchmarks.metrics import Counters, parse, scrape
from benchmarks.target import Target
from benchmarks.transfer import together

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
    reads = together(proof.transfers)
    assert reads is not None
    assert (reads.mean_post_ms, reads.mean_transfer_ms) == (pytest.approx(1), pytest.approx(2))


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


@pytest.fixture(params=["pd", "aggregated"])
def either(request: pytest.FixtureRequest, service: StandIn) -> Target:
    """A target of each kind; the stand-in shows two replicas, prefill-0 and decode-0, for both."""
    return Target.model_validate((target_data if request.param == "pd" else aggregated)(service.url))


def renamed(counters: Counters, old: str, new: str) -> Counters:
    """The same counters as if a replica had another id."""
    items = counters.values.items()
    return Counters(
        {(n, frozenset((k, v.replace(old, new)) for k, v in labels)): value for (n, labels), value in items}
    )


def test_a_replica_that_is_gone_is_named(either: Target) -> None:
    ask(either.url, (10,))
    before = scrape(either.metrics_urls)
    sent = ask(either.url, LENGTHS)
    after = renamed(scrape(either.metrics_urls), "decode-0", "decode-1")
    proof = prove_kv(either, sent, after.since(before))
    assert proof.replica_changes == ["a replica is gone (restarted or scaled away) during the rate: decode-0"]
    assert prove_kv(either, sent, scrape(either.metrics_urls).since(before)).replica_changes == []


def test_a_restarted_replica_is_seen_although_ray_keeps_its_counters(either: Target) -> None:
    before = scrape(either.metrics_urls)
    sent = ask(either.url, LENGTHS)
    after = scrape(either.metrics_urls)
    successor = renamed(after, "decode-0", "decode-1")
    proof = prove_kv(either, sent, Counters({**after.values, **successor.values}).since(before))
    assert proof.replica_changes == ["3 replicas were at work, 2 are deployed: one was restarted or added"]


def test_a_counter_that_went_backwards_is_named(target: Target) -> None:
    sent = ask(target.url, LENGTHS)
    now = scrape(target.metrics_urls)
    before = Counters({series: value + 1000 for series, value in now.values.items() if series[0] == TRANSFERS})
    proof = prove_kv(target, sent, now.since(before))
    assert any("went backwards" in reason for reason in proof.reasons)


def test_what_decode_had_cached_is_not_expected_again(service: StandIn, target: Target) -> None:
    before = scrape(target.metrics_urls)
    sent = ask(target.url, (64,))
    text = service.exposition() + (
        "# TYPE ray_vllm_prefix_cache_hits_total counter\n"
        'ray_vllm_prefix_cache_hits_total{NodeAddress="10.0.0.1",ReplicaId="decode-0",model_name="stand-in-model"} 32\n'
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
