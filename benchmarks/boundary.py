"""At which request rate does a latency meet its bound? An estimate with a range, from runs at several rates.

Every run gives one value: the logarithm of the measured statistic over its bound. Over log(rate) it is nearly a line
around the boundary, so the boundary is where a line fitted to the runs near it crosses zero. The range is Fieller's:
all rates at which the line's confidence band contains zero. Runs scatter around the line by what they are: successive
requests resemble each other, more so near saturation, and an interval of one run's percentile alone would not show it.

Nearly a line: a knee or a step close to the boundary is none, and the line's range beside it is too narrow and too low.
So the range is held against the rates at which single runs part (benchmarks/parting.py).

Poisson arrivals make the rate of a window of n requests scatter by 1/√n, which is much of what makes two runs at one
rate differ. It is known exactly, so it is a control variate (Lavenberg and Welch 1981, Management Science 27:3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.parting import cuts, is_bent

# How far from the estimate, in log(rate), runs still lie on one line with those at the boundary.
NEAR = 0.10
# The confidence of a stated range.
STATED = 0.90
# Fewer runs than this do not tell their scatter from the line.
FEWEST = 5
# A statistic further than this from its bound, in log, says only on which side the rate is.
FURTHEST = math.log(10)
# An end of a range further than this from the estimate, in log, is open: nothing out there was measured, and it may be
# further than a float reaches.
REACH = math.log(10)
# Where the line does not hold, the range is that of all partings with so many runs more on the wrong side than the best
# one has. The line does not hold where its range and the best parting are further apart than APART, in log. Both are
# from 100 searches each of made-up services. 90 % ranges hold the truth of three straight ones in 97 or 98 (the
# line's own: 90), of ten with a knee or a step in 92 of 97 or more (6 to 69), and of queues M/D/c in 89 or more (62 to
# 94), but for two: 66 of 92 (44) where the p90 asked for is exactly twice the service time of M/D/1, and 77 of 99 (84)
# at 97 % of M/D/16's capacity with windows of 2,000, which are too short for its memory.
MORE_WRONG = 2
APART = 0.01
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
    `scatter`: the standard deviation of their excess around the line, or around their mean where there is none.
    `bent`: no line holds there, and the range is that of single runs, some of which pass and some fail.
    """

    confidence: float
    runs: int
    rate: float | None = None
    passes: float | None = None
    fails: float | None = None
    spread: float | None = None
    freedom: int = 0
    scatter: float | None = None
    bent: bool = False

    @property
    def half_width(self) -> float:
        """Half of the range as a part of the estimate; infinite while an end is open."""
        if self.rate is None or self.passes is None or self.fails is None:
            return math.inf
        return (self.fails - self.passes) / 2 / self.rate


def find_boundary(runs: Sequence[Run], confidence: float = STATED) -> Boundary:
    """The boundary of one bound, from all runs that say something about it. Rates may repeat.

    Its range is the line's, and holds the best partings of the runs as well. Where the line is bent or far from those,
    the range is that of partings nearly as good, and an estimate outside of it gives way to the best one.
    """
    found = line_boundary(runs, confidence)
    # A run passes or fails by the rate that it got.
    sides = [(run.achieved, run.passes) for run in runs]
    best = cuts(sides)
    if found.rate is None or found.passes is None or found.fails is None or not best:
        return found
    rate, passes, fails = found.rate, found.passes, found.fails
    low, high = best[0][0], best[-1][1]
    bent = found.bent or max(math.log(low / fails), math.log(passes / high)) > APART
    if bent:
        wide = cuts(sides, MORE_WRONG)
        low, high = wide[0][0], wide[-1][1]
        rate = rate if low < rate < high else math.sqrt(math.prod(best[len(best) // 2]))
        passes = fails = rate
    t = _student(confidence, found.freedom)
    stretch = t / _student(STATED, found.freedom)  # partings have no confidence; what was studied is that of STATED
    down = max(math.log(rate / passes), math.log(rate / low) * stretch)
    up = max(math.log(fails / rate), math.log(high / rate) * stretch)
    return replace(
        found,
        rate=rate,
        passes=rate * math.exp(-down) if down <= REACH else None,
        fails=rate * math.exp(up) if up <= REACH else None,
        spread=max(down, up) / t,
        bent=bent,
    )


def line_boundary(runs: Sequence[Run], confidence: float = STATED) -> Boundary:
    """Where a line through the runs near the boundary meets the bound, and its range: right where latency is a line."""
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
    best = cuts([(run.offered, run.passes) for run in runs])
    return math.sqrt(math.prod(best[len(best) // 2])) if best else None


def _student(confidence: float, freedom: int) -> float:
    """How many standard errors an end of a two-sided range is from its middle."""
    # Not at the top: it takes most of a second to import, and only what searches or compares needs it.
    from scipy import stats

    return float(stats.t.ppf(0.5 + confidence / 2, freedom))


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
    bent = is_bent(design, np.array(x), excess)
    known = replace(nothing, freedom=freedom, scatter=math.sqrt(variance), bent=bent)
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
    t = _student(known.confidence, known.freedom)
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
