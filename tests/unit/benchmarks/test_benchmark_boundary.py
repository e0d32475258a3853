"""The boundary of a bound, and its range, against curves that are known."""

import math

import numpy as np
import pytest

from benchmarks.boundary import Run, crude_boundary, find_boundary

TRUE = 8.0
STEEP = 20.0
REQUESTS = 500


def share(rate: float) -> float:
    """A curve that reaches a tenth at TRUE."""
    return 1 / (1 + 9 * math.exp(-STEEP * math.log(rate / TRUE)))


def drawn(
    rates: list[float], draw: np.random.Generator, scatter: float = 0.0, luck: float = 0.0, slope: float = STEEP
) -> list[Run]:
    """Runs whose shares follow the curve. `scatter`: of runs beyond that of requests, on the curve's scale; `luck`: of
    the arrivals, which act as another rate would."""
    runs: list[Run] = []
    for rate in rates:
        achieved = rate * math.exp(luck * draw.standard_normal())
        logit = -math.log(9) + slope * math.log(achieved / TRUE) + scatter * draw.standard_normal()
        over = draw.binomial(REQUESTS, 1 / (1 + math.exp(-logit)))
        runs.append(Run(rate, achieved, over / REQUESTS, 0.1, REQUESTS))
    return runs


AROUND = [TRUE * factor for factor in (0.94, 0.97, 1.0, 1.03, 1.06, 0.95, 1.05, 0.98, 1.02, 1.0)]


@pytest.mark.parametrize(("scatter", "luck"), [(0.0, 0.0), (0.5, 0.0), (0.3, 0.04)])
def test_the_range_holds_the_truth_as_often_as_it_says(scatter: float, luck: float) -> None:
    draw = np.random.default_rng(1)
    found = [find_boundary(drawn(AROUND, draw, scatter, luck)) for _ in range(200)]
    held = sum(bool(b.passes and b.fails and b.passes <= TRUE <= b.fails) for b in found)
    assert 172 <= held <= 196  # 180 are due; within three standard errors, or above for more than independent scatter
    assert float(np.median([b.rate or 0 for b in found])) == pytest.approx(TRUE, rel=0.01)


def test_luck_with_arrivals_is_taken_out() -> None:
    draw = np.random.default_rng(2)
    lucky = [find_boundary(drawn(AROUND, draw, luck=0.06)).half_width for _ in range(30)]
    blind = [
        find_boundary([Run(r.offered, r.offered, r.value, r.limit, r.weight) for r in drawn(AROUND, draw, luck=0.06)])
        for _ in range(30)
    ]
    assert np.median(lucky) < 0.6 * np.median([b.half_width for b in blind])


def test_a_mean_is_held_against_its_bound_as_it_is() -> None:
    draw = np.random.default_rng(3)
    runs = [
        Run(rate, rate, (rate / TRUE) ** 2 * math.exp(0.02 * draw.standard_normal()), 1.0, 500 / 0.3**2)
        for rate in AROUND
    ]
    found = find_boundary(runs)
    assert found.rate == pytest.approx(TRUE, rel=0.01)
    assert found.passes is not None
    assert found.fails is not None
    assert found.passes < TRUE < found.fails


def test_without_a_run_on_each_side_nothing_is_known() -> None:
    draw = np.random.default_rng(4)
    below = find_boundary(drawn([5, 5.5, 6, 6.5, 7], draw))
    assert (below.rate, below.passes, below.fails) == (None, None, None)
    assert below.half_width == math.inf


def test_no_range_where_latency_does_not_rise_with_the_rate() -> None:
    runs = [
        Run(rate, rate, value, 0.1, 500) for rate, value in zip(AROUND, [0.3, 0.2, 0.1, 0.05, 0.02] * 2, strict=True)
    ]
    found = find_boundary(sorted(runs, key=lambda run: run.offered))
    assert found.half_width == math.inf


def test_few_runs_that_lie_on_a_curve_by_chance_are_not_believed() -> None:
    """Nobody scatters less than independent requests do."""
    exact = [Run(rate, rate, share(rate), 0.1, REQUESTS) for rate in AROUND[:6]]
    found = find_boundary(exact)
    assert found.rate == pytest.approx(TRUE, rel=0.005)
    assert found.half_width > 0.005


def test_one_run_on_the_wrong_side_does_not_move_the_crude_boundary() -> None:
    values = {5: 0.0, 6: 0.0, 6.5: 0.2, 7: 0.02, 9: 0.4, 10: 0.9}
    crude = crude_boundary([Run(rate, rate, value, 0.1, 500) for rate, value in values.items()])
    assert crude is not None
    assert 7 < crude < 9


def test_runs_far_away_do_not_bend_the_curve() -> None:
    draw = np.random.default_rng(5)
    near = drawn(AROUND, draw, scatter=0.2)
    far = [Run(rate, rate, 0.09, 0.1, REQUESTS) for rate in (2.0, 3.0, 4.0)]
    assert find_boundary(near + far).rate == find_boundary(near).rate
