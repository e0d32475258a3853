"""Numbers from records, checked against arithmetic done by hand."""

from __future__ import annotations

import json
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
