"""Numbers from records, checked against arithmetic done by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_in_data import request

from benchmarks.errors import BenchmarkError
from benchmarks.records import read_records
from benchmarks.scenario import Scenario
from benchmarks.summary import describe, samples_needed, summarize
from benchmarks.workload import Planned, Workload

# One request a second: half a second of warm-up is one request, 30 are measured.
RATE = 1.0


def test_warm_up_is_cut_off_and_rates_are_those_of_the_window(scenario: Scenario) -> None:
    slow_first = request(0, ttft_ms=5000.0)
    summary = summarize(scenario, RATE, [slow_first, *(request(n) for n in range(1, 31))])
    assert (summary.warmup_requests, summary.measured, summary.good) == (1, 30, 30)
    assert summary.ttft.mean == 10.0
    assert summary.achieved == pytest.approx(1.0)
    assert summary.window_s == pytest.approx(29.0)
    # The last answer ends after the window; 29 end in it.
    assert summary.served == pytest.approx(29 / 29)
    assert summary.output_tokens_per_s == pytest.approx(29 * 8 / 29)
    assert summary.drain_s == pytest.approx(0.080)
    assert summary.tpot.mean == pytest.approx((80 - 10) / 7)
    assert summary.slo_met is True


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"error": "HTTP 500"}, "failed"),
        ({"output_tokens": 7}, "shorter than asked"),
        ({"output_tokens": 9}, "longer than asked"),
        ({"output_tokens": 0}, "empty"),
        ({"output_tokens": None, "prompt_tokens": None}, "broken off or empty"),
    ],
)
def test_an_incomplete_answer_is_no_success(scenario: Scenario, change: dict[str, Any], kind: str) -> None:
    bad = request(30, ttft_ms=0.001, **change)
    summary = summarize(scenario, RATE, [*(request(n) for n in range(30)), bad])
    assert summary.faults == {kind: 1}
    assert summary.good == 29
    assert summary.ttft.mean == 10.0


def test_an_slo_that_is_missed_or_cannot_be_judged(scenario: Scenario) -> None:
    slow = summarize(scenario, RATE, [request(n, ttft_ms=3000.0) for n in range(31)])
    assert slow.slo_met is False
    few = summarize(scenario, RATE, [request(n) for n in range(10)])
    assert few.slo_met is None


def test_percentiles_are_given_only_when_the_samples_support_them() -> None:
    assert [samples_needed(q) for q in (0.5, 0.9, 0.99)] == [5, 29, 299]
    values = list(np.random.default_rng(1).exponential(size=300))
    assert describe(values).p99 == pytest.approx(np.quantile(values, 0.99))
    assert describe(values[:298]).p99 is None
    assert describe(values[:28]).p90 is None
    assert describe([]).mean is None


def record(**metrics: Any) -> dict[str, Any]:
    """A line of AIPerf 0.13's profile_export.jsonl, shortened to what is read."""
    meta = {
        "conversation_id": "session_000001",
        "credit_issued_ns": 1_000_000_000,
        "request_start_ns": 1_002_000_000,
        "request_end_ns": 1_030_000_000,
        "was_cancelled": False,
    }
    return {"metadata": meta, "metrics": {name: {"value": value, "unit": ""} for name, value in metrics.items()}}


def plan(osl: int) -> Workload:
    """What was planned for the one request of `record`."""
    planned = Planned(id="session_000001", isl=70, osl=osl, blocks=[1, 2, 3, 4, 5])
    return Workload(block_size=16, unsettled=0, requests=[planned])


def test_records_of_aiperf_are_read(tmp_path: Path) -> None:
    good = record(
        time_to_first_token=7.7,
        request_latency=27.5,
        usage_prompt_tokens=64,
        usage_completion_tokens=8,
        inter_chunk_latency=[0.5, 0.6],
    )
    # As AIPerf wrote it for a stream that ended with an error event: no error, times, no token counts.
    broken_off = record(time_to_first_token=7.6, request_latency=17.2)
    empty = record(error_isl=64) | {"error": {"type": "InvalidInferenceResultError", "message": "no content"}}
    file = tmp_path / "profile_export.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in (good, broken_off, empty)), encoding="utf-8")
    requests = read_records(file, plan(8))
    assert [item.fault() for item in requests] == [None, "broken off or empty", "failed"]
    assert (requests[0].asked, requests[0].planned_prompt, requests[0].prompt_tokens) == (8, 70, 64)


def test_an_answer_is_held_against_what_it_was_asked_for(tmp_path: Path) -> None:
    line = record(time_to_first_token=7.7, request_latency=27.5, usage_prompt_tokens=64, usage_completion_tokens=8)
    file = tmp_path / "profile_export.jsonl"
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert read_records(file, plan(9))[0].fault() == "shorter than asked"
    with pytest.raises(BenchmarkError, match="line 1: a request that was not planned"):
        read_records(file, Workload(block_size=16, unsettled=0, requests=[]))


@pytest.mark.parametrize(("text", "said"), [("", "wrote no record"), ('{"metadata": {"x"', "line 1: not a record")])
def test_damaged_records_are_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "profile_export.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BenchmarkError, match=said):
        read_records(file, plan(8))
    with pytest.raises(BenchmarkError, match="left no records"):
        read_records(tmp_path / "missing.jsonl", plan(8))


@pytest.mark.parametrize(
    ("metric", "value", "said"),
    [
        ("time_to_first_token", float("nan"), "time_to_first_token is nan, no number"),
        ("request_latency", float("inf"), "request_latency is inf, no number"),
        ("time_to_first_token", "5", "time_to_first_token is '5', no number"),
        ("inter_chunk_latency", [1.0, None], "inter_chunk_latency is None, no number"),
        ("usage_completion_tokens", 8.5, "usage_completion_tokens is 8.5, no number of tokens"),
        ("usage_prompt_tokens", -1, "usage_prompt_tokens is -1, no number of tokens"),
    ],
)
def test_a_value_that_is_no_number_is_one_line(tmp_path: Path, metric: str, value: object, said: str) -> None:
    """A NaN among TTFTs would make every one of their statistics NaN, and no bound is missed by NaN."""
    file = tmp_path / "profile_export.jsonl"
    file.write_text(json.dumps(record(**{metric: value})), encoding="utf-8")
    with pytest.raises(BenchmarkError, match=f"line 1: {said}"):
        read_records(file, plan(8))


@pytest.mark.parametrize(
    "line",
    [
        [1],
        record() | {"metrics": []},
        record() | {"error": "boom"},
        {"metadata": record()["metadata"] | {"request_start_ns": "1"}, "metrics": {}},
        {"metadata": record()["metadata"], "metrics": {"time_to_first_token": {"value": 0.2, "unit": "s"}}},
    ],
)
def test_a_line_of_another_shape_or_unit_is_one_line(tmp_path: Path, line: object) -> None:
    file = tmp_path / "profile_export.jsonl"
    file.write_text(json.dumps(line), encoding="utf-8")
    with pytest.raises(BenchmarkError, match=r"line 1: .*AIPerf 0\.13"):
        read_records(file, plan(8))


@pytest.mark.parametrize(
    "times", [{"ttft_ms": -5.0}, {"ttft_ms": 0.0}, {"ttft_ms": 81.0}, {"end_s": 99.0}, {"gaps_ms": (5.0, -1.0)}]
)
def test_times_that_no_request_can_have_are_in_no_latency(scenario: Scenario, times: dict[str, Any]) -> None:
    whole = replace(request(0), gaps_ms=())
    assert (whole.fault(), replace(whole, ttft_ms=80.0).fault()) == (None, None)  # all tokens at once
    assert replace(whole, **times).fault() == "with impossible times"
    summary = summarize(scenario, RATE, [*(request(n) for n in range(30)), replace(request(30), **times)])
    assert (summary.faults, summary.ttft.count) == ({"with impossible times": 1}, 29)


def test_lateness_is_from_when_a_request_was_due(tmp_path: Path) -> None:
    file = tmp_path / "profile_export.jsonl"
    undue = record()
    del undue["metadata"]["credit_issued_ns"]
    file.write_text("\n".join(json.dumps(line) for line in (record(), undue)), encoding="utf-8")
    first, second = read_records(file, plan(8))
    assert (first.due_s, first.sent_s, first.end_s) == (1.0, 1.002, 1.03)
    assert second.due_s == second.sent_s


def test_a_bound_that_is_just_reached_is_met(scenario: Scenario) -> None:
    (bound,) = scenario.slo
    just = summarize(scenario, RATE, [request(n, ttft_ms=bound.bound_ms) for n in range(31)])
    assert (just.ttft.p90, just.slo_met) == (bound.bound_ms, True)
