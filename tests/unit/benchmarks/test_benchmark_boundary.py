"""The boundary of a bound, and its range, against lines that are known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.boundary import FURTHEST, Run, crude_boundary, find_boundary, line_boundary

TRUE = 8.0
STEEP = 8.0


def drawn(rates: list[float], draw: np.random.Generator, scatter: float = 0.1, luck: float = 0.0) -> list[Run]:
    """Runs whose excess rises with log(rate) and is 0 at TRUE. `scatter`: of the runs; `luck`: of their arrivals, which
    act as another rate would."""
    runs: list[Run] = []
    for rate in rates:
        achieved = rate * math.exp(luck * draw.standard_normal())
        excess = STEEP * math.log(achieved / TRUE) + scatter * draw.standard_normal()
        runs.append(Run(rate, achieved, min(max(excess, -FURTHEST), FURTHEST)))
    return runs


AROUND = [TRUE * factor for factor in (0.94, 0.97, 1.0, 1.03, 1.06, 0.95, 1.05, 0.98, 1.02, 1.0)]


@pytest.mark.parametrize(("scatter", "luck"), [(0.1, 0.0), (0.3, 0.0), (0.1, 0.04)])
def test_the_range_holds_the_truth_as_often_as_it_says(scatter: float, luck: float) -> None:
    draw = np.random.default_rng(1)
    found = [line_boundary(drawn(AROUND, draw, scatter, luck)) for _ in range(400)]
    held = sum(bool(b.passes and b.fails and b.passes <= TRUE <= b.fails) for b in found)
    # 360 are due, within three standard errors; a range that is open for lack of a slope holds nothing.
    assert 342 <= held + sum(math.isinf(b.half_width) for b in found) <= 378
    assert float(np.median([b.rate or 0 for b in found])) == pytest.approx(TRUE, rel=0.01)


def test_luck_with_arrivals_is_taken_out() -> None:
    draw = np.random.default_rng(2)
    lucky = [drawn(AROUND, draw, scatter=0.02, luck=0.03) for _ in range(30)]
    blind = [[replace(run, achieved=run.offered) for run in runs] for runs in lucky]
    seeing = np.median([line_boundary(runs).half_width for runs in lucky])
    assert seeing < 0.6 * np.median([line_boundary(runs).half_width for runs in blind])


def test_without_a_run_on_each_side_nothing_is_known() -> None:
    draw = np.random.default_rng(4)
    below = find_boundary(drawn([5, 5.5, 6, 6.5, 7], draw))
    assert (below.rate, below.passes, below.fails) == (None, None, None)
    assert below.half_width == math.inf


def test_no_range_where_latency_does_not_rise_with_the_rate() -> None:
    falling = [Run(rate, rate, 8 * math.log(TRUE / rate) + 0.001) for rate in AROUND]
    assert find_boundary(falling).half_width == math.inf


def test_more_scatter_makes_a_wider_range() -> None:
    draw = np.random.default_rng(6)
    calm, rough = (
        np.median([line_boundary(drawn(AROUND, draw, scatter)).half_width for _ in range(30)])
        for scatter in (0.05, 0.2)
    )
    assert rough > 3 * calm


def test_one_run_on_the_wrong_side_does_not_move_the_crude_boundary() -> None:
    excess = {5: -1.0, 6: -0.8, 6.5: 0.1, 7: -0.3, 9: 0.4, 10: 0.9}
    crude = crude_boundary([Run(rate, rate, value) for rate, value in excess.items()])
    assert crude is not None
    assert 7 < crude < 9


def test_runs_far_away_do_not_bend_the_line() -> None:
    draw = np.random.default_rng(5)
    near = drawn(AROUND, draw)
    far = [Run(rate, rate, -0.01) for rate in (2.0, 3.0, 4.0)]
    assert find_boundary(near + far).rate == find_boundary(near).rate
