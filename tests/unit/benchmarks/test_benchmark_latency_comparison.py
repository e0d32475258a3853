"""Latencies of two sides at the same rates: a verdict only where runs were repeated, and rarely a false one."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.evidence import KvProof
from benchmarks.latency_comparison import STATISTIC, LatencyAt, compare_latencies, in_words, latencies_of
from benchmarks.ratio import CONFIDENCE, ratio_of_runs
from benchmarks.run_directory import RateResult
from benchmarks.summary import Latency, RateSummary
from benchmarks.validity import Finding

PROOF = KvProof(verdict="not applicable", reasons=[], requests=0, foreign_requests=0)
TOO_MUCH = Finding(
    id="queue", outcome="fault", evidence={"in_flight_rise": 1.0, "in_flight_sigmas": 12.0}, sentence="the queue grows"
)


def result(rate: float, p90: float, width: float = 1.0, *findings: Finding) -> RateResult:
    """A rate whose latencies are all p90, in an interval of that width around it."""
    interval = (p90 - width, p90 + width)
    latency = Latency(count=300, mean=p90, p50=p90, p90=p90, p99=p90, intervals={STATISTIC: interval})
    same = dict.fromkeys(("ttft", "tpot", "itl", "e2e"), latency)
    summary = RateSummary.model_construct(offered=rate, **same)
    return RateResult.model_construct(rate=rate, seed=1, summary=summary, kv=PROOF, findings=list(findings), files={})


def ttft(base: list[RateResult], candidate: list[RateResult]) -> list[LatencyAt]:
    return [item for item in compare_latencies(base, candidate) if item.metric == "ttft"]


def test_one_window_a_side_shows_numbers_and_no_verdict() -> None:
    """However far apart: how much a repeated run differs, one window does not tell."""
    (found,) = ttft([result(4, 100)], [result(4, 300)])
    assert (found.base.value, found.candidate.value, found.base.runs) == (100, 300, 1)
    assert (found.lower, found.why) == ("no verdict", "one run a side")
    assert (found.ratio.verdict, found.ratio.estimate) == ("not known", None)
    (found,) = ttft([result(4, 100), result(4, 101)], [result(4, 300)])
    assert (found.lower, found.why) == ("no verdict", "one run on a side")


def test_repeated_runs_that_scatter_less_than_they_differ_have_a_verdict() -> None:
    quick, slow = [result(4, 100), result(4, 102), result(4, 99)], [result(4, 300), result(4, 306), result(4, 297)]
    (found,) = ttft(quick, slow)
    assert found.lower == "base"
    assert found.ratio.estimate == pytest.approx(3)
    (found,) = ttft(slow, quick)
    assert found.lower == "candidate"
    assert found.ratio.estimate == pytest.approx(1 / 3)


def test_narrow_windows_that_scatter_are_no_difference() -> None:
    """Each interval misses each of the other side's, and every value of one side is above the other's: no verdict from
    that, as the runs of a side differ by as much."""
    (found,) = ttft([result(4, 100, 1), result(4, 130, 1)], [result(4, 140, 1), result(4, 170, 1)])
    assert found.lower == "no difference shown"
    assert found.ratio.estimate == pytest.approx((140 * 170 / 100 / 130) ** 0.5)


def test_a_value_is_the_mean_in_an_interval_that_holds_those_of_all_runs() -> None:
    (found,) = ttft([result(4, 100, 5), result(4, 110, 1)], [result(4, 100), result(4, 101)])
    assert (found.base.value, found.base.low, found.base.high, found.base.runs) == (105, 95, 111, 2)


def test_rates_that_one_side_alone_measured_are_not_compared() -> None:
    """Between the two rates of the base its latency is no line. A search's thousandth beside a rate is that rate."""
    base, candidate = [result(2, 50), result(8, 900)], [result(2.002, 50), result(4, 60), result(6, 90), result(8.4, 9)]
    assert [item.rate for item in ttft(base, candidate)] == [2]
    assert [item.rate for item in latencies_of(candidate) if item.metric == "ttft"] == [2.002, 4, 6, 8.4]


@pytest.mark.parametrize("overloaded", [0, 1])
def test_a_rate_at_which_a_run_was_overloaded_is_left_out_for_all(overloaded: int) -> None:
    """The run that came through by chance is no measure of the service there."""
    base = [result(4, 100), result(4, 101)]
    base[overloaded] = result(4, 1000, 1.0, TOO_MUCH)
    candidate = [result(4, 100), result(4, 101)]
    assert ttft(base, candidate) == ttft(candidate, base) == []
    assert latencies_of(base) == []


@pytest.mark.parametrize(
    ("base", "candidate", "why"),
    [([0.0, 1.0], [1.0, 2.0], "0 ms has no ratio"), ([5.0, 5.0], [6.0, 6.0], "alike to the last digit")],
)
def test_what_has_no_ratio_has_no_verdict(base: list[float], candidate: list[float], why: str) -> None:
    (found,) = ttft([result(4, value) for value in base], [result(4, value) for value in candidate])
    assert found.lower == "no verdict"
    assert why in found.why


def test_a_run_that_stalled_is_a_wide_range_and_no_error() -> None:
    (found,) = ttft([result(4, 1e-9), result(4, 1e9)], [result(4, 10), result(4, 10)])
    assert found.lower == "no difference shown"
    assert LatencyAt.model_validate_json(found.model_dump_json()) == found


def test_sentences_name_the_rates_that_were_measured_and_no_range() -> None:
    base = [result(rate, p90) for rate in (1, 2, 4) for p90 in (100, 102)]
    candidate = [*(result(rate, p90) for rate in (1, 2, 4) for p90 in (300, 306)), result(8, 9)]
    said = in_words(compare_latencies([*base, result(8, 5)], candidate), "agg", "pd")
    assert said[0] == "agg has the lower TTFT p90 at 1, 2 and 4 req/s"
    assert said[-1] == "no verdict on TTFT p90, TPOT p90, E2E p90 at 8 req/s: one run a side"
    assert len(said) == 4


@pytest.mark.parametrize("runs", [2, 3, 6])
def test_equal_sides_are_told_apart_as_seldom_as_it_says(runs: int) -> None:
    draw = np.random.default_rng(runs)
    wrong = 0
    for _ in range(1_500):
        base, candidate = np.exp(0.2 * draw.standard_normal((2, runs)))
        wrong += ratio_of_runs(list(base), list(candidate)).verdict != "no difference shown"
    assert wrong / 1_500 <= (1 - CONFIDENCE) * 1.6
