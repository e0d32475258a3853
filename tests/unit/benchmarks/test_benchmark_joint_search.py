"""The highest rate under several bounds at once, and of a service that does not carry what it is offered."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from stand_in_data import request

from benchmarks.boundary import FURTHEST
from benchmarks.highest_rate import HighestRate, highest_rate
from benchmarks.joint_search import conclude, expected
from benchmarks.measured import Measured
from benchmarks.observation import observe
from benchmarks.slo import Slo
from benchmarks.steady_state import queue_memory
from benchmarks.validity import Finding, shows_overload

TTFT = Slo(metric="ttft", statistic="p90", bound=100, unit="ms")
TPOT = Slo(metric="tpot", statistic="p90", bound=25, unit="ms")
MEAN = Slo(metric="tpot", statistic="mean", bound=25, unit="ms")
RATES = [3, 3.5, 4, 4.2, 4.4, 4.6, 4.8, 5, 5.2, 5.4, 5.6, 5.8, 6]
# Luck of the runs, in turn: two successive ones differ by as much as the line rises between them.
SCATTER = (0.03, -0.04, 0.01, 0.05, -0.02, -0.05, 0.02)

Latency = Callable[[float], float]


def runs(ttft: Latency, tpot: Latency, rates: Sequence[float] = RATES, overloaded_from: float = 9) -> list[Measured]:
    """Runs whose every answer takes as long as the rate and the run's luck make it. Milliseconds."""
    made: list[Measured] = []
    for number, rate in enumerate(rates):
        luck = math.exp(SCATTER[number % len(SCATTER)])
        times = {"ttft_ms": ttft(rate) * luck, "e2e_ms": ttft(rate) * luck + 7 * tpot(rate) * luck}
        window = [request(n, sent_s=n / rate, end_s=n / rate + 1, **times) for n in range(20)]
        made.append(Measured(rate, window, 20, overloaded=rate >= overloaded_from))
    return made


def rising(at: float) -> Latency:
    """TTFT of 100 ms at a rate, or, of a quarter of that, TPOT."""
    return lambda rate: 100 * (rate / at) ** 4


def quarter(latency: Latency) -> Latency:
    return lambda rate: latency(rate) / 4


def flat(_: float) -> float:
    return 10.0


def test_the_range_is_that_of_the_bound_which_is_missed_first() -> None:
    alone = conclude([TTFT], runs(rising(4.6), flat))
    for bounds in ([TTFT, TPOT], [TPOT, TTFT]):
        joint = conclude(bounds, runs(rising(4.6), quarter(rising(5.4))))
        assert (joint.rate, joint.passes, joint.fails) == (alone.rate, alone.passes, alone.fails)
        assert joint.passes
        assert joint.rate
        assert joint.fails
        assert joint.passes < joint.rate < joint.fails < 5


def test_a_bound_that_is_missed_everywhere_leaves_nothing_of_another() -> None:
    found = highest_rate([TTFT, TPOT], runs(lambda _: 1000.0, quarter(rising(5))))
    assert (found.rate, found.passes, found.fails, found.ranged) == (None, None, None, False)
    assert found.missed_from == 3
    assert str(found) == "missed at every rate measured, down to 3 req/s"


def test_the_lowest_bound_without_a_range_is_not_given_that_of_another() -> None:
    """TTFT jumps over its bound at 3.2 req/s and falls again, while TPOT crosses its own at 5."""
    found = highest_rate([TTFT, TPOT], runs(lambda rate: 60 if rate < 3.2 else 650 / rate, quarter(rising(5))))
    assert found.rate is not None
    assert found.rate < 4
    assert (found.passes, found.fails, found.ranged) == (None, None, False)
    assert str(found) == f"about {found.rate:.3g} req/s, without a range"


@pytest.mark.parametrize("ends", [(None, 5.0), (4.0, None), (5.05, 5.1), (3.0, 4.0)])
def test_a_range_has_two_ends_and_its_estimate_between_them(ends: tuple[float | None, float | None]) -> None:
    assert not HighestRate(confidence=0.9, rate=4.5, passes=ends[0], fails=ends[1]).ranged
    assert not HighestRate(confidence=0.9, rate=None, passes=4.0, fails=5.0).ranged
    assert HighestRate(confidence=0.9, rate=4.5, passes=4.0, fails=5.0).ranged


def test_a_rate_that_is_too_much_for_the_service_meets_nothing() -> None:
    """Low latencies at rates that it does not carry: it gives up on some requests, or its queue just begins to grow."""
    carried = highest_rate([TTFT], runs(flat, flat))
    assert carried.met_up_to == 6
    found = highest_rate([TTFT], runs(flat, flat, overloaded_from=5.1))
    assert found.met_up_to is None
    assert found.rate == pytest.approx(5.1, rel=0.02)
    assert not found.ranged
    assert highest_rate([TTFT], runs(flat, flat, overloaded_from=1)).missed_from == 3


def test_overload_above_the_range_leaves_it_and_overload_inside_takes_it() -> None:
    alone = conclude([TTFT], runs(rising(4.6), flat))
    assert alone.fails is not None
    assert conclude([TTFT], runs(rising(4.6), flat, overloaded_from=5.3)) == alone
    below = conclude([TTFT], runs(rising(4.6), flat, overloaded_from=4.2))
    assert below.rate == pytest.approx(4.1, rel=0.02)
    assert (below.passes, below.fails) == (None, None)


def fault(name: str, **evidence: float) -> Finding:
    return Finding(id=name, outcome="fault", sentence="", evidence={**evidence})


def test_overload_is_told_by_its_findings_whatever_else_is_wrong() -> None:
    drain, late = fault("drain"), fault("seed")
    assert shows_overload([drain])
    assert shows_overload([late, drain])
    assert not shows_overload([late, drain.model_copy(update={"outcome": "note"})])
    assert not shows_overload([fault("of another version")])


@pytest.mark.parametrize("name", ["window", "warm-up"])
def test_a_window_that_is_too_short_is_overload_only_where_something_rises(name: str) -> None:
    """Ten latencies did not fit in: no sign that the service cannot carry the rate."""
    steady = Finding(id="queue", outcome="ok", sentence="", evidence={"e2e_s_rise": 0.6, "e2e_s_sigmas": 1.5})
    rising = steady.model_copy(update={"evidence": {"e2e_s_rise": 0.6, "e2e_s_sigmas": 2.5}})
    small = steady.model_copy(update={"evidence": {"e2e_s_rise": 0.1, "e2e_s_sigmas": 9.0}})
    assert not shows_overload([fault(name)])
    assert not shows_overload([fault(name), steady])
    assert not shows_overload([fault(name), small])
    assert shows_overload([fault(name), rising])
    assert not shows_overload([rising])


def test_too_few_requests_and_times_that_fall_are_no_overload() -> None:
    assert not shows_overload([fault("queue", measured=12)])
    assert not shows_overload([fault("ttft-trend", ttft_ms_rise=-0.8, ttft_ms_sigmas=-12.0)])
    assert shows_overload([fault("ttft-trend", ttft_ms_rise=0.8, ttft_ms_sigmas=12.0)])


def test_a_service_that_misses_below_a_rate_that_it_meets_has_no_highest_one() -> None:
    latency: Latency = lambda rate: 200 if rate < 3.7 else rising(5)(rate)  # noqa: E731
    found = highest_rate([TTFT], runs(latency, flat))
    assert (found.rate, found.passes, found.fails, found.met_up_to) == (None, None, None, None)
    assert (found.missed_below, found.met_above) == (3, 4.8)
    assert str(found) == "not monotone: missed at 3 req/s, but met at 4.8"
    again = highest_rate([TTFT], runs(lambda rate: 60.0 if rate > 5.9 else rising(4.5)(rate), flat))
    assert (again.rate, again.met_above) == (None, 6)
    assert "not monotone" in str(again)


def test_a_run_near_the_boundary_may_fall_on_either_side() -> None:
    """Runs scatter: that is what the range is for."""
    made = runs(rising(4.6), flat)
    at = [run.rate for run in made].index(4.4)
    slow = [replace(one, ttft_ms=101.0) for one in made[at].window]
    made[at] = replace(made[at], window=slow)
    assert highest_rate([TTFT], made).missed_below is None
    assert highest_rate([TTFT], made).rate


def test_the_longest_memory_of_the_runs_nearby_counts() -> None:
    """Of requests that resemble each other, and of some that do not."""
    calm, long = (
        Measured(rate, [request(n, sent_s=n / 10, end_s=n / 10 + took(n)) for n in range(400)], 400)
        for rate, took in ((5.0, lambda n: 1.0), (5.1, lambda n: 1.0 + 5 * (n // 100 % 2)))
    )
    assert queue_memory(long.window) > queue_memory(calm.window)
    assert expected(5.0, [calm, long], 1.0)[1] == queue_memory(long.window)


def test_failed_answers_are_not_left_out_of_a_mean_nor_of_a_percentile() -> None:
    good = [request(n) for n in range(18)]
    failed = [request(n, error="HTTP 500") for n in range(18, 20)]
    assert observe(MEAN, good, 1).passes
    assert observe(MEAN, [*good, failed[0]], 1).excess == FURTHEST
    assert observe(TTFT, [*good, failed[0]], 1).passes
    assert observe(TTFT, [*good, *failed, *failed], 1).excess == FURTHEST
    assert observe(TTFT, failed, 1).excess == FURTHEST


def test_a_percentile_is_a_value_that_was_measured_and_none_below_it() -> None:
    """Two of ten values: p90 lies between them, and the higher one counts."""
    window = [request(n, ttft_ms=50.0 if n < 9 else 200.0) for n in range(10)]
    assert observe(TTFT, window, 1).excess == pytest.approx(math.log(2))


def test_the_rate_sent_counts_the_gaps_and_not_the_requests() -> None:
    assert observe(TTFT, [request(n) for n in range(5)], 1).achieved == 1


def test_answers_of_one_token_have_no_time_between_tokens() -> None:
    window = [request(n, **({"asked": 1, "output_tokens": 1, "gaps_ms": ()} if n % 5 == 0 else {})) for n in range(50)]
    for slo in (TPOT, MEAN, TPOT.model_copy(update={"metric": "itl"})):
        assert observe(slo, window, 1).excess == pytest.approx(math.log(10 / 25))
    assert observe(TPOT, window[:1] * 2, 1).excess == FURTHEST  # nothing is known, so nothing is met
