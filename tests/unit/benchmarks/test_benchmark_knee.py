"""Ranges where latency over rate is no line: a knee or a step beside the boundary."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.boundary import FURTHEST, Boundary, Run, find_boundary, line_boundary
from benchmarks.parting import cuts
from benchmarks.ratio import CONFIDENCE
from benchmarks.search import Limits, next_rate

LIMITS = Limits(lowest=2, highest=20)
KNEE = 8.0
SEEDS = 25

Excess = Callable[[float], float]


def knee(bound: float, steep: float) -> tuple[Excess, float]:
    """(excess over log(rate / KNEE), boundary) of a service that is all but flat below its knee."""
    return lambda x: -math.log(bound) + (0.3 if x < 0 else steep) * x, KNEE * bound ** (1 / steep)


def step(below: float, above: float) -> tuple[Excess, float]:
    """The same of one whose latency jumps at its boundary."""
    return lambda x: (below if x < 0 else above) + x, KNEE


def search(excess: Excess, seed: int, below: float = 0.02, above: float = 0.1) -> list[Run]:
    """All runs of one search. Scatter of runs that pass and that fail; the rates sent are off by 2 %, as those of
    2,500 Poisson arrivals are."""
    draw, runs = np.random.default_rng(seed), list[Run]()
    while (plan := next_rate(runs, LIMITS)).rate is not None:
        achieved = plan.rate * math.exp(0.02 * draw.standard_normal())
        value = excess(math.log(achieved / KNEE))
        value += (below if value <= 0 else above) * draw.standard_normal()
        runs.append(Run(plan.rate, achieved, min(max(float(value), -FURTHEST), FURTHEST)))
    return runs


def holds(found: Boundary, truth: float) -> bool:
    return bool(found.passes and found.fails and found.passes <= truth <= found.fails)


@pytest.mark.parametrize(
    ("service", "line_holds"),
    [(knee(1.5, 30), 0.5), (knee(1.2, 20), 0.5), (knee(3, 100), 0.6), (step(-0.3, 0.5), 0.7), (step(-0.1, 0.8), 0.4)],
    ids=["knee 1.5", "knee 1.2", "knee 3", "step", "step close to the bound"],
)
def test_the_range_holds_the_truth_beside_a_knee_where_that_of_a_line_does_not(
    service: tuple[Excess, float], line_holds: float
) -> None:
    excess, truth = service
    searches = [search(excess, seed) for seed in range(SEEDS)]
    held = [holds(find_boundary(runs), truth) for runs in searches]
    assert sum(held) >= 0.8 * SEEDS
    assert sum(holds(line_boundary(runs), truth) for runs in searches) < line_holds * SEEDS


def test_the_range_of_a_line_is_kept_where_it_holds() -> None:
    """It grows by what single runs leave open, and stays as narrow as asked for."""
    truth = KNEE
    found = [find_boundary(search(lambda x: 8 * x, seed, 0.1, 0.1)) for seed in range(SEEDS)]
    assert sum(holds(one, truth) for one in found) >= 0.8 * SEEDS
    assert sum(one.bent for one in found) <= 0.3 * SEEDS
    assert float(np.median([one.half_width for one in found])) < LIMITS.half_width


def test_a_comparison_takes_a_wider_range_than_a_statement() -> None:
    runs = search(knee(1.5, 30)[0], 1)
    stated, sure = find_boundary(runs), find_boundary(runs, CONFIDENCE)
    assert stated.bent
    assert sure.half_width > 1.5 * stated.half_width
    assert stated.spread
    assert stated.spread > (line_boundary(runs).spread or 0)


def test_runs_part_where_fewest_are_on_the_wrong_side() -> None:
    sides = [(1.0, True), (2.0, True), (3.0, False), (4.0, True), (5.0, False), (6.0, False)]
    assert cuts(sides) == [(2.0, 3.0), (4.0, 5.0)]
    assert cuts(sides, 1) == [(1.0, 2.0), (2.0, 3.0), (3.0, 4.0), (4.0, 5.0), (5.0, 6.0)]
    assert cuts(sides[:2]) == []
    assert cuts([(2.0, True), (2.0, False), (1.0, True), (3.0, False)]) == [(1.0, 2.0), (2.0, 3.0)]
