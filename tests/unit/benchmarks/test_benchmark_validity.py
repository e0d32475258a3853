"""What findings say beyond being there: their words, borderline cases, what cannot be seen, and what they lead to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from provoked import AWAKE, ENGINE, edited, pair, run, some
from simulated_runs import clean, samples
from stand_in_data import scenario_data, target_data

from benchmarks.evidence import KvProof
from benchmarks.scenario import Scenario
from benchmarks.target import Target
from benchmarks.validity import (
    Finding,
    Seen,
    accepted_faults,
    check_comparison,
    check_rate,
    check_run,
    only_overload,
    refusals,
)


def one(seen: Seen, name: str) -> Finding:
    return next(finding for finding in check_rate(seen) if finding.id == name)


def test_each_way_of_failing_is_counted_once_and_in_words() -> None:
    seen = edited(
        lambda n, r: replace(
            r,
            error={100: "HTTP 500: engine died", 101: "Request timed out", 102: "Invalid inference result"}.get(n),
            output_tokens={103: None, 104: 0, 105: 3}.get(n, r.output_tokens),
        )
    )
    said = {finding.id: finding.sentence for finding in check_rate(seen) if finding.outcome == "fault"}
    assert said["failed-requests"].startswith("2 of 480 answers failed, 1 of them timed out")
    assert said["failed-requests"].endswith("first error: HTTP 500: engine died")
    assert said["broken-streams"].startswith("1 of 480 answers were broken off after HTTP 200")
    assert said["empty-answers"] == "2 of 480 answers are empty"
    assert said["short-answers"].endswith("the shortest has 3 tokens")
    assert len([name for name in said if name.endswith(("-requests", "-streams", "-answers"))]) == 4


def test_what_fails_in_the_warm_up_only_is_a_note() -> None:
    seen = edited(lambda n, r: replace(r, error="HTTP 503") if n == 5 else r)
    assert one(seen, "failed-requests").outcome == "note"


def test_a_prompt_that_is_off_by_chance_is_a_note_and_by_two_tokens_nothing() -> None:
    assert one(edited(lambda n, r: replace(r, prompt_tokens=600) if n == 90 else r), "input-length").outcome == "note"
    assert one(edited(lambda _, r: replace(r, prompt_tokens=514)), "input-length").outcome == "ok"


@pytest.mark.parametrize(
    ("planned", "hits", "outcome", "said"),
    [
        (0.0, 0.0, "ok", "0.0 % of the prompt tokens were in the prefix cache, 0 % planned"),
        (0.6, 0.52, "ok", "52.0 % of the prompt tokens were in the prefix cache, 57 to 60 % planned"),
        (0.6, 0.2, "fault", "colder"),
        (0.6, 0.7, "fault", "warmer"),
        (0.0, 0.3, "fault", "warmer"),
        (0.6, None, "note", "cannot be seen"),
    ],
)
def test_the_prefix_cache_must_be_as_warm_as_planned(
    planned: float, hits: float | None, outcome: str, said: str
) -> None:
    asked = clean().scenario.model_copy(update={"prefix_hit_rate": planned})
    finding = one(replace(clean(), scenario=asked, hit_rate=hits), "prefix-hit-rate")
    assert finding.outcome == outcome
    assert said in finding.sentence


def test_what_a_workload_can_hit_goes_before_what_the_scenario_says() -> None:
    """Turns of a conversation that a router spreads over engines meet the one before them now and then only."""
    spread = replace(clean(), planned_hit_rate=(0.4, 0.8))
    assert [one(replace(spread, hit_rate=rate), "prefix-hit-rate").outcome for rate in (0.3, 0.4, 0.8, 0.9)] == [
        "fault",
        "ok",
        "ok",
        "fault",
    ]


def test_a_batched_stream_is_a_fault_where_the_slo_bounds_itl() -> None:
    batched = edited(lambda _, r: replace(r, gaps_ms=(40.0,) * 3))  # 16 tokens in four chunks
    found = one(batched, "stream-batching")
    assert (found.outcome, found.evidence["tokens_per_chunk"]) == ("note", 4.0)
    slo = [{"metric": "itl", "statistic": "p90", "bound": 50, "unit": "ms"}]
    bounded = Scenario.model_validate(batched.scenario.model_dump() | {"slo": slo})
    assert one(replace(batched, scenario=bounded), "stream-batching").outcome == "fault"


def test_a_clock_that_was_set_back_shows_in_the_records_alone() -> None:
    seen = replace(edited(lambda n, r: replace(r, sent_s=r.due_s - 0.4) if n > 300 else r), client=None)
    assert "sent 0.40 s before it was due" in one(seen, "clock-steps").sentence


def test_a_load_generator_that_waits_for_a_core_is_as_bound_as_one_that_has_it() -> None:
    starved = [look.model_copy(update={"busiest": 0.3, "wanting": 0.97}) for look in samples(clean().requests, 1)]
    found = one(replace(clean(), client=starved), "client-cpu")
    assert found.outcome == "fault"
    assert "used 30 % of a core while it sent and wanted 97 %" in found.sentence


def test_a_busy_machine_is_a_note() -> None:
    busy = [look.model_copy(update={"machine": 0.97}) for look in samples(clean().requests, 1)]
    assert one(replace(clean(), client=busy), "client-cpu").outcome == "note"


def test_what_was_not_collected_is_no_ok() -> None:
    blind = KvProof(verdict="not applicable", reasons=[], requests=560, foreign_requests=None)
    seen = replace(clean(), proof=blind, client=None, engine_s=None, hit_rate=None)
    findings = {finding.id: finding.outcome for finding in check_rate(seen)}
    assert {name for name, outcome in findings.items() if outcome == "note"} == {"foreign-traffic", "replicas"}
    assert not findings.keys() & {"client-cpu", "delivery", "prefix-hit-rate", "transport"}


def test_a_run_of_a_ray_cluster_without_our_image_is_not_held_against_one() -> None:
    target = Target.model_validate(target_data("http://127.0.0.1:1"))
    findings = check_run(target, Scenario.model_validate(scenario_data()), AWAKE, {})
    assert {f.id: f.outcome for f in findings} == {"files": "ok", "priming": "ok", "weights": "note", "seed": "ok"}


def test_prompts_that_go_on_alike_are_counted() -> None:
    found = one(replace(clean(), alike=31), "prompts")
    assert (found.outcome, found.evidence["alike"]) == ("fault", 31)


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        (
            {"engine": {"max_num_seqs": 32}},
            "unequal-budgets",
            "max_num_seqs: agg-2 aggregated 256, pd-1p1d prefill 256, pd-1p1d decode 32",
        ),
        ({"engine": {"gpu_memory_utilization": None}}, "unequal-budgets", "gpu_memory_utilization"),
        ({"deployment": {"gpus": 24}}, "unequal-gpus", "16 rocm GPUs against 24 rocm GPUs"),
        ({"deployment": {"gpus": 0}}, "unequal-gpus", "16 rocm GPUs against 2 engine replicas on rocm"),
        ({"versions": {"stand-in": "2"}}, "unequal-image", "stand-in 1 against 2"),
        ({"asked": {"prefix_hit_rate": 0.3}}, "unequal-scenario", "prefix_hit_rate: 0.0 against 0.3"),
    ],
)
def test_a_comparison_names_what_differs(changes: dict[str, Any], name: str, said: str) -> None:
    faults = {f.id: f.sentence for f in check_comparison(pair(**changes)) if f.outcome == "fault"}
    assert list(faults) == [name]
    assert said in faults[name]


def test_the_reference_post_s_own_budgets_are_unequal() -> None:
    """32768 tokens a step for prefill and aggregated, 4096 for decode; 32 sequences for prefill."""
    sides = pair()
    roles = {
        "prefill": {"max_num_batched_tokens": 32768, "max_num_seqs": 32},
        "decode": {"max_num_batched_tokens": 4096},
    }
    engine = {role: ENGINE | limits for role, limits in roles.items()}
    deployment = sides.candidate.target.deployment.model_copy(update={"engine": engine})
    candidate = replace(sides.candidate, target=sides.candidate.target.model_copy(update={"deployment": deployment}))
    faults = [f for f in check_comparison(replace(sides, candidate=candidate)) if f.outcome == "fault"]
    assert [f.id for f in faults] == ["unequal-budgets"]
    assert "pd-1p1d prefill 32768, pd-1p1d decode 4096" in faults[0].sentence
    assert "pd-1p1d prefill 32, pd-1p1d decode 256" in faults[0].sentence


def test_other_rates_bounds_of_time_and_seeds_are_no_other_work() -> None:
    asked = {"rates": [1, 2], "window_s": 30, "warmup_s": 3, "min_requests": 100, "seed": 4, "name": "other"}
    assert [f for f in check_comparison(pair(asked=asked)) if f.outcome != "ok"] == []


def test_a_fault_refuses_until_it_is_accepted_by_name() -> None:
    findings = check_rate(some(5, output_tokens=9))
    assert refusals(check_rate(clean()), []) == []
    assert [line.split(":")[0] for line in refusals(findings, [])] == ["short-answers"]
    assert "--accept short-answers" in refusals(findings, [])[0]
    assert refusals(findings, ["short-answers"]) == []
    assert [finding.id for finding in accepted_faults(findings, ["short-answers", "queue"])] == ["short-answers"]


def test_accepting_one_fault_accepts_no_other_and_a_name_that_is_none_is_refused() -> None:
    findings = [*check_rate(some(5, output_tokens=9)), *check_run(*_run(dummy_weights=True))]
    assert [line.split(":")[0] for line in refusals(findings, ["queue"])] == ["short-answers"]
    lines = refusals(findings, ["short-answers", "short_answers"])
    assert len(lines) == 1
    assert lines[0].startswith("--accept short_answers: there is no such finding; there are: arrivals, broken-streams")


def _run(**changes: Any) -> tuple[Any, ...]:
    seen = run(**changes)
    return seen.target, seen.scenario, seen.priming, seen.image, seen.damaged


def test_overload_is_told_from_other_faults() -> None:
    queue = Finding(
        id="queue",
        outcome="fault",
        sentence="the queue grows",
        evidence={"in_flight_rise": 1.0, "in_flight_sigmas": 12.0},
    )
    short = Finding(id="window", outcome="fault", sentence="the window lasted 3 s")
    foreign = Finding(id="foreign-traffic", outcome="fault", sentence="12 requests")
    assert only_overload([queue])
    assert only_overload([queue, short])
    assert not only_overload([short])
    assert not only_overload([queue, foreign])
    assert not only_overload([queue.model_copy(update={"outcome": "ok"})])
