"""Each way in which KV does not move as it should has a verdict of its own: recorded metrics (recorded/README.md)."""

from __future__ import annotations

import pytest
from recorded_metrics import SHORT_AND_LONG, proof_of, recorded, target
from stand_in_client import ask
from stand_in_data import aggregated, request, scenario_data, target_data
from stand_in_server import StandIn

from benchmarks.evidence import WATCHED, KvProof, prove_kv
from benchmarks.metrics import Counters, scrape
from benchmarks.scenario import Scenario
from benchmarks.summary import summarize
from benchmarks.target import Target
from benchmarks.transfer import together
from benchmarks.validity import Seen, check_rate


def ids(proof: KvProof) -> list[str]:
    return [cause.id for cause in proof.causes]


def test_the_recorded_run_is_proven_and_its_reads_are_counted() -> None:
    proof = proof_of("proven")
    assert (proof.verdict, proof.causes) == ("proven", [])
    reads = together(proof.transfers)
    assert reads is not None
    assert (reads.transfers, reads.bytes, reads.descriptors) == (36, 36 * 256 * 1024, 36 * 8)
    assert reads.mean_descriptors == 8  # 2 blocks, 4 layers
    assert reads.mean_post_ms == pytest.approx(1000 * (0.088328 - 0.007392) / 36)
    assert reads.mean_transfer_ms == pytest.approx(1000 * (0.098461 - 0.017525) / 36)
    assert reads.mb_per_s == pytest.approx(36 * 256 * 1024 / 1e6 / (0.098461 - 0.017525))
    assert [(part.replica, part.node, part.transports) for part in proof.transfers] == [
        ("dw26mbl2", "127.0.0.2", "tcp,sm,self")
    ]


def test_decode_s_tokens_come_from_the_counters_without_a_source() -> None:
    """The one with a source says, in the same recording, that prefill received every token from outside."""
    tokens = proof_of("proven").tokens
    assert tokens is not None
    assert (tokens.received, tokens.cached, tokens.computed) == (9216, 0, 36)
    assert tokens.prefill == {"shg8wxgw": 9216}
    by_source = recorded("proven").by_labels("ray_vllm_prompt_tokens_by_source_total")
    claimed = {dict(labels)["ReplicaId"]: tokens for labels, tokens in by_source.items()}
    assert claimed["shg8wxgw"] == 9216


def test_decode_that_recomputes() -> None:
    proof = proof_of("recomputed")
    assert ids(proof) == ["kv-missing", "kv-recomputed"]
    assert "together they computed 18,432 for 9,216 sent, so decode computed prompts again" in proof.reasons[1]


DECODE = ("ReplicaId", "dw26mbl2")


@pytest.mark.parametrize(
    ("lost", "cause"),
    [
        ("ray_vllm_prompt_tokens_total", "kv-computed-unknown"),
        # Ray shows a counter from its first increment on: without cached tokens, all were computed.
        ("ray_vllm_prompt_tokens_cached_total", "kv-recomputed"),
    ],
)
def test_decode_whose_own_tokens_are_not_exported_is_not_proven(lost: str, cause: str) -> None:
    """Every byte moved, and decode may have computed every prompt again all the same."""
    delta = recorded("proven")
    series = {key for key in delta.values if key[0] == lost and DECODE in key[1]}
    assert series
    left = {key: value for key, value in delta.values.items() if key not in series}
    sent = [request(number, prompt_tokens=256) for number in range(36)]
    proof = prove_kv(target(), sent, Counters(left))
    assert (proof.verdict, ids(proof)) == ("failed", [cause])


def test_more_cached_tokens_than_tokens_are_no_proof() -> None:
    delta = recorded("proven")
    few = {
        key: 0.0 if key[0] == "ray_vllm_prompt_tokens_total" and DECODE in key[1] else value
        for key, value in delta.values.items()
    }
    sent = [request(number, prompt_tokens=256) for number in range(36)]
    assert ids(prove_kv(target(), sent, Counters(few))) == ["kv-computed-unknown"]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", WATCHED)
def test_a_counter_that_is_no_number_is_one_finding(name: str, odd: float) -> None:
    values = {**recorded("proven").values, (name, frozenset({DECODE})): odd}
    sent = [request(number, prompt_tokens=256) for number in range(36)]
    proof = prove_kv(target(), sent, Counters(values))
    assert (proof.verdict, ids(proof)) == ("failed", ["kv-unreadable"])
    assert name in proof.reasons[0]
    scenario = Scenario.model_validate(scenario_data())
    findings = {f.id: f for f in check_rate(Seen(scenario, summarize(scenario, 1.0, sent), sent, proof, 0))}
    assert findings["kv-unreadable"].outcome == "fault"


def test_numbers_that_nobody_reads_may_be_none() -> None:
    """A quantile of nothing is NaN, in many an exporter."""
    values = {**recorded("proven").values, ("go_gc_duration_seconds", frozenset({("quantile", "1")})): float("nan")}
    sent = [request(number, prompt_tokens=256) for number in range(36)]
    assert prove_kv(target(), sent, Counters(values)).verdict == "proven"


def test_an_aggregated_service_whose_count_of_answers_is_no_number_tells_nothing_of_foreign_traffic() -> None:
    odd = Counters({("ray_vllm_request_success_total", frozenset({DECODE})): float("nan")})
    proof = prove_kv(Target.model_validate(aggregated("http://127.0.0.1:9")), [request(0)], odd)
    assert (proof.verdict, proof.foreign_requests) == ("not applicable", None)


def test_nothing_moved_and_nothing_computed_twice_is_missing_and_not_recomputed() -> None:
    """As an aggregated engine behind a target that says pd would look: every prompt was computed once."""
    delta = recorded("recomputed")
    once = {key: value for key, value in delta.values.items() if ("ReplicaId", "dw26mbl2") not in key[1]}
    sent = [request(number, prompt_tokens=256) for number in range(36)]
    assert ids(prove_kv(target(), sent, Counters(once))) == ["kv-missing"]


def test_expired_leases_although_every_byte_is_right() -> None:
    proof = proof_of("expired")
    assert ids(proof) == ["kv-expired"]
    assert proof.counted_bytes == proof.expected_bytes
    assert "of 2 requests on prefill shg8wxgw" in proof.reasons[0]


def test_failed_transfers_and_notifications() -> None:
    proof = proof_of("failed")
    assert ids(proof) == ["kv-failed-transfers", "kv-unnotified", "kv-transfers", "kv-bytes", "kv-recomputed"]
    assert proof.reasons[0].startswith("6 failed transfers")
    assert proof.reasons[2] == "30 KV transfers for 36 expected"
    assert proof.reasons[4].startswith("decode computed 1,566 prompt tokens itself")


def test_unequal_block_sizes_are_named() -> None:
    proof = proof_of("block-sizes", SHORT_AND_LONG)
    assert ids(proof) == ["kv-block-size"]
    assert "1,900,544 KV bytes moved, 2,228,224 expected for decode's blocks of 128 tokens" in proof.reasons[0]
    assert "exactly what blocks of 64 tokens need" in proof.reasons[0]


def test_block_sizes_that_are_configured_unequal_are_named_although_no_byte_shows_it() -> None:
    """Prompts of 256 tokens are whole blocks of either size."""
    unequal = target()
    unequal.deployment.engine["prefill"]["block_size"] = 64
    sent = [request(number, prompt_tokens=256) for number in range(36)]
    proof = prove_kv(unequal, sent, recorded("proven"))
    assert ids(proof) == ["kv-block-size"]
    assert proof.reasons[0].startswith("prefill has blocks of 64 tokens and decode of 128, as configured")


def test_bytes_that_fit_no_block_size_are_wrong_bytes() -> None:
    delta = recorded("proven")
    less = {key: value - 1024 if "bytes_transferred_total" in key[0] else value for key, value in delta.values.items()}
    sent = [request(number, prompt_tokens=256) for number in range(36)]
    assert ids(prove_kv(target(), sent, Counters(less))) == ["kv-bytes"]


@pytest.mark.parametrize(
    ("behaviour", "found"),
    [
        ({"prefill_block_size": 4}, {"kv-block-size"}),
        ({"kv_factor": 0.5}, {"kv-bytes"}),
        ({"decode_computes": 0.5}, {"kv-recomputed"}),
        ({"decode_computes": 1.0}, {"kv-recomputed"}),
        ({"export_kv": False}, {"kv-missing"}),
        ({"expired": 1}, {"kv-expired"}),
        ({"failed_transfers": 1}, {"kv-failed-transfers"}),
        ({"failed_notifications": 2}, {"kv-unnotified"}),
        ({"error_every": 3}, {"kv-uncounted", "kv-transfers"}),
        ({"foreign_requests": 2}, {"foreign-traffic", "kv-bytes"}),
    ],
)
def test_each_cause_is_a_finding_of_its_own(service: StandIn, behaviour: dict[str, object], found: set[str]) -> None:
    stand_in = Target.model_validate(target_data(service.url))
    for name, value in behaviour.items():
        setattr(service.behaviour, name, value)
    before = scrape(stand_in.metrics_urls)
    sent = ask(service.url, (1, 15, 16, 17, 64, 100))
    proof = prove_kv(stand_in, sent, scrape(stand_in.metrics_urls).since(before))
    assert set(ids(proof)) == found
    scenario = Scenario.model_validate(scenario_data())
    findings = {f.id: f for f in check_rate(Seen(scenario, summarize(scenario, 1.0, sent), sent, proof, 0))}
    for cause in proof.causes:
        assert findings[cause.id].outcome == "fault"
        assert cause.name in findings["kv"].sentence
