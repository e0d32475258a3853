"""Where a search goes, and that it ends."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.boundary import FURTHEST, Run, find_boundary
from benchmarks.search import RUNS_AT_THE_BEGINNING, RUNS_AT_THE_END, Limits, next_rate
from benchmarks.shown_met import FEWEST

LIMITS = Limits(lowest=1, highest=16)


def service(boundary: float, seed: int = 1) -> Callable[[float], Run]:
    """A service that reaches its bound at `boundary`."""
    draw = np.random.default_rng(seed)

    def measure(rate: float) -> Run:
        excess = 10 * math.log(rate / boundary) + 0.15 * draw.standard_normal()
        return Run(rate, rate, min(max(excess, -FURTHEST), FURTHEST))

    return measure


def search(measure: Callable[[float], Run], limits: Limits = LIMITS) -> tuple[list[Run], str]:
    runs: list[Run] = []
    while (plan := next_rate(runs, limits)).rate is not None:
        runs.append(measure(plan.rate))
    return runs, plan.reason


@pytest.mark.parametrize("boundary", [1.3, 3.0, 7.0, 12.0, 15.0])
def test_it_finds_the_boundary(boundary: float) -> None:
    runs, reason = search(service(boundary))
    found = find_boundary(runs)
    assert found.rate == pytest.approx(boundary, rel=0.05)
    assert reason.startswith("known to ±")
    assert found.half_width <= LIMITS.half_width
    assert all(LIMITS.lowest <= run.offered <= LIMITS.highest for run in runs)


def test_a_service_that_passes_everything_or_nothing_ends_it_soon() -> None:
    runs, reason = search(service(100))
    assert "the highest rate, 16 req/s, passes" in reason
    assert sum(run.offered == 16 for run in runs) == RUNS_AT_THE_END == FEWEST
    assert len(runs) <= 5 + RUNS_AT_THE_END
    runs, reason = search(service(0.1))
    assert "the lowest rate, 1 req/s, fails" in reason
    assert sum(run.offered == 1 for run in runs) == RUNS_AT_THE_BEGINNING == 2
    assert len(runs) <= 5 + RUNS_AT_THE_BEGINNING


def test_it_spends_no_more_than_it_may() -> None:
    draw = np.random.default_rng(6)
    runs, reason = search(lambda rate: Run(rate, rate, float(draw.uniform(-1, 1))))
    assert len(runs) == LIMITS.most_runs
    assert "are the most" in reason


def test_runs_made_for_one_slo_are_used_for_the_next() -> None:
    """The same runs answer another bound: the second search starts from them."""
    first, _ = search(service(6.0))
    other = service(6.6, seed=2)
    known = [other(run.offered) for run in first]
    more = list(known)
    while (plan := next_rate(more, Limits(1, 16, most_runs=32))).rate is not None:
        more.append(other(plan.rate))
    alone, _ = search(service(6.6, seed=2))
    assert len(more) - len(known) < len(alone)
    assert find_boundary(more).rate == pytest.approx(6.6, rel=0.05)


def test_runs_go_to_both_sides_of_the_boundary() -> None:
    runs, _ = search(service(6.0))
    near = [run.offered for run in runs if abs(run.offered / 6.0 - 1) < 0.12]
    assert min(near) < 5.9
    assert max(near) > 6.1


def test_an_end_that_passes_does_not_end_a_search_in_which_another_rate_fails() -> None:
    passing, failing = Run(16, 16, -0.2), Run(15, 15, 0.1)
    assert next_rate([passing] * RUNS_AT_THE_END, LIMITS).rate is None
    assert next_rate([*[passing] * RUNS_AT_THE_END, failing], LIMITS).rate is not None
    assert next_rate([Run(1, 1, 0.1)] * RUNS_AT_THE_BEGINNING, LIMITS).rate is None
    assert next_rate([Run(1, 1, 0.1), Run(2, 2, -0.1)], LIMITS).rate is not None


def test_one_run_that_fails_at_the_lowest_rate_is_made_again_before_it_ends_the_search() -> None:
    """A stall of a minute fails any run: what the second one says counts as much."""
    again = next_rate([Run(1, 1, 0.1)], LIMITS)
    assert (again.rate, again.reason) == (1, "failing run 2 of 2 at the lowest rate")
    assert next_rate([Run(1, 1, 0.1), Run(1, 1, -0.5)], LIMITS).reason == "closing in"


def test_a_range_as_narrow_as_asked_for_needs_ten_runs_all_the_same() -> None:
    """Few runs may lie on a line by chance."""
    rates = [7.6, 7.7, 7.8, 7.9, 8.0, 8.1, 8.2, 8.3, 8.4, 8.5]
    exact = [Run(rate, rate, 10 * math.log(rate / 8.03) + 0.01 * (-1) ** n) for n, rate in enumerate(rates)]
    assert next_rate(exact[1:], LIMITS).rate is not None
    assert next_rate(exact, LIMITS).rate is None
