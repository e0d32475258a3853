"""The ends of a boundary's range: where they lie exactly, and where there are none."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.boundary import FURTHEST, Run, find_boundary, line_boundary

# Arrivals that missed their rate by up to 2 %, more on one side: then the line's level and slope are not independent.
RUNS = [
    Run(rate, rate * (1 + missed), 8 * math.log(rate * (1 + missed) / 8) + scatter)
    for rate, missed, scatter in [
        (7.5, -0.02, 0.03),
        (7.7, -0.01, -0.12),
        (7.8, 0.02, 0.07),
        (8.0, 0.01, 0.11),
        (8.2, 0.02, -0.09),
        (8.3, 0.01, 0.05),
        (8.5, 0.02, 0.02),
    ]
]


def band(log_rate: float) -> tuple[float, float]:
    """(value, standard error) of the fitted line at a rate without luck, by least squares around that very rate."""
    design = np.array([(1, math.log(r.offered) - log_rate, math.log(r.achieved / r.offered)) for r in RUNS])
    excess = np.array([run.excess for run in RUNS])
    beta, *_ = np.linalg.lstsq(design, excess, rcond=None)
    variance = float(((excess - design @ beta) ** 2).sum()) / (len(RUNS) - 3)
    return float(beta[0]), math.sqrt(variance * float(np.linalg.inv(design.T @ design)[0, 0]))


def test_the_ends_are_where_the_confidence_band_leaves_zero() -> None:
    found = line_boundary(RUNS)
    t = float(stats.t.ppf(0.95, len(RUNS) - 3))
    assert found.passes is not None
    assert found.fails is not None
    for end, sign in ((found.passes, -1), (found.fails, 1)):
        value, error = band(math.log(end))
        assert value == pytest.approx(sign * t * error, rel=1e-6)


def test_the_spread_is_the_error_of_the_line_where_it_crosses_over_its_slope() -> None:
    found = line_boundary(RUNS)
    assert found.rate is not None
    value, error = band(math.log(found.rate))
    assert value == pytest.approx(0, abs=1e-9)
    slope = (band(math.log(found.rate) + 1e-3)[0] - value) / 1e-3
    assert found.spread == pytest.approx(error / slope, rel=1e-6)


def test_no_end_is_known_where_the_line_is_not_shown_to_rise() -> None:
    """A slope of 2 with an error of 2: t is 2 at 90 %, so that it may as well be none."""
    excess = [-0.3, 0.25, -0.2, 0.3, -0.35, 0.3, -0.1, 0.2]
    runs = [Run(7.6 + 0.1 * n, 7.6 + 0.1 * n, value) for n, value in enumerate(excess)]
    found = find_boundary(runs)
    assert found.rate == pytest.approx(8, rel=0.05)
    assert (found.passes, found.fails) == (None, None)
    assert find_boundary([replace(run, excess=run.excess / 3 + math.log(run.offered / 8) * 8) for run in runs]).passes


def test_a_run_right_at_its_bound_passes() -> None:
    """As a bound is met by a latency that equals it."""
    assert Run(1, 1, 0.0).passes
    assert not Run(1, 1, 1e-9).passes


def test_an_end_out_of_reach_is_open() -> None:
    """Five runs of one of the tester's searches, whose range ended at a rate that no float can hold."""
    runs = [
        Run(2.302, 2.2906791749780604, -2.3),
        Run(3.493, 3.420456695226492, -2.287831550243144),
        Run(4.303, 4.21607119711847, -1.270826712929182),
        Run(4.776, 4.86747956183505, 0.14004200525046445),
        Run(4.171, 4.1651584629055245, -0.9288426597491358),
    ]
    found = find_boundary(runs)
    assert found.rate == pytest.approx(4.6, rel=0.05)
    for end in (found.passes, found.fails):
        assert end is None or 0.46 < end < 46
    assert find_boundary(runs, confidence=0.9999).half_width == math.inf


def test_an_estimate_outside_the_rates_measured_is_none() -> None:
    """A line that hardly rises crosses its bound anywhere: the estimate is where passes and failures part."""
    excess = [0.4, 0.5, -0.1, 0.4, 0.45, 0.5]
    runs = [Run(4.5 + 0.2 * n, 4.5 + 0.2 * n, value) for n, value in enumerate(excess)]
    found = find_boundary(runs)
    assert found.rate is not None
    assert 4.5 <= found.rate <= 5.5
    assert found.spread is None


@pytest.mark.parametrize("scatter", [0.0, 0.1])
def test_an_edge_gives_no_range(scatter: float) -> None:
    """A service that fails at once beyond 8 req/s: a line through the two sides crosses zero below it."""
    draw = np.random.default_rng(1)
    rates = [8 * (1 + part) for part in (-0.08, -0.06, -0.04, -0.02, -0.01, 0.01, 0.02, 0.04, 0.06, 0.08)]
    runs = [Run(r, r, FURTHEST if r > 8 else -0.5 + scatter * float(draw.standard_normal())) for r in rates]
    found = find_boundary(runs)
    assert found.rate == pytest.approx(8, rel=0.05)
    assert (found.passes, found.fails) == (None, None)
