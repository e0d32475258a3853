"""Every check finds nothing wrong in a good run, and finds what it is there for."""

from __future__ import annotations

from typing import Literal

import pytest
from stand_in_data import request, scenario_data, target_data

from benchmarks.evidence import KvProof
from benchmarks.priming import Priming
from benchmarks.records import Request
from benchmarks.scenario import Scenario
from benchmarks.summary import summarize
from benchmarks.target import Target
from benchmarks.validity import check_rate, check_run

PROVEN = KvProof(verdict="proven", reasons=[], requests=31, counted_bytes=1, foreign_requests=0)
AWAKE = Priming(seconds=[5.0, 0.1, 0.1, 0.1], awake=True)
GOOD = [request(n) for n in range(31)]


def faults(requests: list[Request], proof: KvProof = PROVEN, alike: int = 0, rate: float = 1.0) -> dict[str, str]:
    """The faults found, id to sentence."""
    scenario = Scenario.model_validate(scenario_data())
    findings = check_rate(scenario, summarize(scenario, rate, requests), requests, proof, alike)
    return {finding.id: finding.sentence for finding in findings if finding.outcome == "fault"}


def test_a_good_run_has_no_fault() -> None:
    assert faults(GOOD) == {}


def test_failed_answers() -> None:
    found = faults([*GOOD[:29], request(29, error="HTTP 500: engine died"), request(30, output_tokens=3)])
    assert "1 failed, 1 shorter than asked; first error: HTTP 500: engine died" in found["answers"]


def test_a_load_engine_that_ended_early() -> None:
    assert faults(GOOD[:30]) == {"records": "30 of 31 requests have a record"}


def test_an_offered_rate_that_was_not_achieved() -> None:
    late = [request(n * 3, prompt_id=str(n)) for n in range(31)]
    assert "0.33 req/s sent for 1 offered" in faults(late)["offered-rate"]


def test_too_few_samples() -> None:
    assert "p90 of TTFT needs 29" in faults(GOOD[:20])["samples"]


def test_a_warm_up_shorter_than_one_answer() -> None:
    assert "mean E2E 2.00 s" in faults([request(n, e2e_ms=2000.0) for n in range(31)])["warm-up"]


def test_a_queue_that_grows() -> None:
    growing = [request(n, e2e_ms=80.0 + 10 * n) for n in range(31)]
    assert faults(growing)["queue"].startswith("the queue grows")
    # One slow answer is not a queue.
    assert "queue" not in faults([*GOOD[:30], request(30, e2e_ms=2000.0)])


def test_repeated_prompts() -> None:
    repeated = [request(n, prompt_id="always the same") for n in range(31)]
    assert "30 prompts sent twice" in faults(repeated)["prompts"]
    assert "31 go on like another" in faults(GOOD, alike=31)["prompts"]


def test_a_failed_kv_proof_and_foreign_traffic() -> None:
    reason = "10 KV bytes moved, 20 expected"
    failed = KvProof(verdict="failed", reasons=[reason], requests=31, foreign_requests=2)
    found = faults(GOOD, proof=failed)
    assert reason in found["kv"]
    assert found["foreign-traffic"] == "the service answered 2 requests that this run did not send"


@pytest.mark.parametrize("verdict", ["not applicable", "failed"])
def test_a_replica_that_did_not_live_through_the_rate(verdict: Literal["not applicable", "failed"]) -> None:
    proof = KvProof(verdict=verdict, reasons=[], requests=31, foreign_requests=0, replica_changes=["a replica is gone"])
    assert faults(GOOD, proof=proof)["replicas"] == "a replica is gone"


def test_what_cannot_be_seen_is_no_ok() -> None:
    scenario = Scenario.model_validate(scenario_data())
    blind = KvProof(verdict="not applicable", reasons=[], requests=31, foreign_requests=None)
    findings = check_rate(scenario, summarize(scenario, 1.0, GOOD), GOOD, blind, 0)
    assert {finding.id for finding in findings if finding.outcome == "note"} == {"foreign-traffic", "replicas"}


@pytest.mark.parametrize(("dummy", "outcome"), [(True, "note"), (False, "ok")])
def test_dummy_weights_are_stated(dummy: bool, outcome: str) -> None:
    data = target_data("http://127.0.0.1:1")
    data["deployment"]["dummy_weights"] = dummy
    findings = check_run(Target.model_validate(data), Scenario.model_validate(scenario_data()), AWAKE, {})
    outcomes = {finding.id: finding.outcome for finding in findings}
    assert outcomes == {"priming": "ok", "weights": outcome, "seed": "ok"}


def test_a_fixed_seed_is_stated() -> None:
    target = Target.model_validate(target_data("http://127.0.0.1:1"))
    findings = check_run(target, Scenario.model_validate(scenario_data(seed=3)), AWAKE, {})
    assert any(finding.id == "seed" and finding.outcome == "note" for finding in findings)
