"""At which request rate does a latency meet its bound? An estimate with a range, from runs at several rates.

Every run gives one value: the logarithm of the measured statistic over its bound. Over log(rate) it is nearly a line
around the boundary, so the boundary is where a line fitted to the runs near it crosses zero. The range is Fieller's:
all rates at which the line's confidence band contains zero. Runs scatter around the line by what they are: successive
requests resemble each other, more so near saturation, and an interval of one run's percentile alone would not show it.

Poisson arrivals make the rate of a window of n requests scatter by 1/√n, which is much of what makes two runs at one
rate differ. It is known exactly, so it is a control variate (Lavenberg and Welch 1981, Management Science 27:3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

# How far from the estimate, in log(rate), runs still lie on one line with those at the boundary.
NEAR = 0.10
# Fewer runs than this do not tell their scatter from the line.
FEWEST = 5
# A statistic further than this from its bound, in log, says only on which side the rate is.
FURTHEST = math.log(10)
# An end of a range further than this from the estimate, in log, is open: nothing out there was measured, and it may be
# further than a float reaches.
REACH = math.log(10)
# Runs whose rates differ by less from what was offered, in log, were sent by the clock.
_NO_LUCK = 1e-6


@dataclass(frozen=True)
class Run:
    """What one run says about one bound. `offered` and `achieved` are requests per second.

    `excess`: log(measured / bound), not further from 0 than FURTHEST.
    """

    offered: float
    achieved: float
    excess: float

    @property
    def passes(self) -> bool:
        """Whether the bound was met, by this run alone."""
        return self.excess <= 0


@dataclass(frozen=True)
class Boundary:
    """Where a bound is met: requests per second.

    `passes`: the highest rate shown to pass; `fails`: the lowest rate shown to fail; with `confidence` the boundary
    lies between the two. `rate` is the estimate, `spread` the standard error of its logarithm with `freedom` degrees of
    freedom. What is not known is None: where no run passed (or failed), where the runs do not rise with the rate or
    cross their bound outside the rates measured, or where some say no more than the side. `runs`: how many lie near.
    `scatter`: the standard deviation of their excess around the line, or
    around their mean where there is none.
    """

    confidence: float
    runs: int
    rate: float | None = None
    passes: float | None = None
    fails: float | None = None
    spread: float | None = None
    freedom: int = 0
    scatter: float | None = None

    @property
    def half_width(self) -> float:
        """Half of the range as a part of the estimate; infinite while an end is open."""
        if self.rate is None or self.passes is None or self.fails is None:
            return math.inf
        return (self.fails - self.passes) / 2 / self.rate


def find_boundary(runs: Sequence[Run], confidence: float = 0.90) -> Boundary:
    """The boundary of one bound, from all runs that say something about it. Rates may repeat."""
    crude = crude_boundary(runs)
    if crude is None:
        return Boundary(confidence, 0)
    near = _near(runs, crude)
    found = _fit(near, confidence)
    for _ in range(5):  # the line moves the estimate, and with it what lies near
        if found.rate is None or (again := _near(runs, found.rate)) == near:
            break
        near, found = again, _fit(again, confidence)
    return found if found.rate is not None else replace(found, rate=crude)


def crude_boundary(runs: Sequence[Run]) -> float | None:
    """The rate that best parts runs that pass from runs that fail; None where one of the two is missing."""
    ordered = sorted(runs, key=lambda run: run.offered)
    if len({run.passes for run in ordered}) < 2:
        return None
    wrong = [
        sum(not run.passes for run in ordered[:cut]) + sum(run.passes for run in ordered[cut:])
        for cut in range(1, len(ordered))
    ]
    best = [cut for cut, count in enumerate(wrong, start=1) if count == min(wrong)]
    cut = best[len(best) // 2]
    return math.sqrt(ordered[cut - 1].offered * ordered[cut].offered)


def _near(runs: Sequence[Run], rate: float) -> list[Run]:
    by_distance = sorted(runs, key=lambda run: abs(math.log(run.offered / rate)))
    near = [run for run in by_distance if abs(math.log(run.offered / rate)) <= NEAR]
    return near if len(near) >= FEWEST else by_distance[:FEWEST]


def _fit(runs: Sequence[Run], confidence: float) -> Boundary:
    """A line through `runs`, and where it crosses zero."""
    nothing = Boundary(confidence, len(runs), scatter=float(np.std([run.excess for run in runs])))
    centre = float(np.mean([math.log(run.offered) for run in runs]))
    x = [math.log(run.offered) - centre for run in runs]
    luck = [math.log(run.achieved / run.offered) for run in runs]
    columns = [np.ones(len(runs)), np.array(x), np.array(luck)]
    # The luck costs a degree of freedom, which few runs do not have to spare; and arrivals from a trace have none.
    lucky = len(runs) > FEWEST and max(luck) - min(luck) > _NO_LUCK
    design = np.column_stack(columns if lucky else columns[:2])
    freedom = len(runs) - design.shape[1]
    if freedom < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return nothing
    inverse = np.linalg.inv(design.T @ design)
    excess = np.array([run.excess for run in runs])
    beta = inverse @ design.T @ excess
    rest = excess - design @ beta
    if beta[1] <= 0:
        return nothing
    if not min(x) - NEAR <= -beta[0] / beta[1] <= max(x) + NEAR:
        return nothing
    variance = float(rest @ rest) / freedom
    covariance = inverse[:2, :2] * variance
    known = replace(nothing, freedom=freedom, scatter=math.sqrt(variance))
    found = _crossing(known, float(beta[0]), float(beta[1]), covariance, centre)
    return replace(found, passes=None, fails=None) if _is_cliff(runs, found.rate) else found


def _is_cliff(runs: Sequence[Run], rate: float | None) -> bool:
    """Whether all that pass, or all that fail, close to `rate` say only that: a line crosses zero beside such an edge,
    and its scatter does not show how far.
    """
    close = [run for run in runs if rate is not None and abs(math.log(run.offered / rate)) <= NEAR]
    sides = ([run for run in close if run.passes], [run for run in close if not run.passes])
    return any(side and all(abs(run.excess) >= FURTHEST for run in side) for side in sides)


def _crossing(known: Boundary, level: float, slope: float, covariance: np.ndarray, centre: float) -> Boundary:
    """Fieller: the rates at which (level + slope·x)² ≤ t² · variance(level + slope·x)."""
    # Not at the top: it takes most of a second to import, and only what searches or compares needs it.
    from scipy import stats

    t = float(stats.t.ppf(0.5 + known.confidence / 2, known.freedom))
    a = slope**2 - t**2 * covariance[1, 1]
    b = 2 * (level * slope - t**2 * covariance[0, 1])
    c = level**2 - t**2 * covariance[0, 0]
    x = -level / slope
    variance = covariance[0, 0] + 2 * x * covariance[0, 1] + x**2 * covariance[1, 1]
    spread = math.sqrt(max(float(variance), 0.0)) / slope
    found = replace(known, rate=math.exp(centre + x), spread=spread)
    inside = b**2 - 4 * a * c
    if a <= 0 or inside < 0:  # that the line rises is not shown, so neither end is
        return found
    low, high = (-b - math.sqrt(inside)) / (2 * a), (-b + math.sqrt(inside)) / (2 * a)
    return replace(
        found,
        passes=math.exp(centre + low) if x - low <= REACH else None,
        fails=math.exp(centre + high) if high - x <= REACH else None,
    )
