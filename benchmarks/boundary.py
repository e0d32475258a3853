"""At which request rate does a latency meet its bound? An estimate with a range, from runs at several rates.

A bound on a percentile is about a share: p90 meets its bound while at most a tenth of the requests exceeds it. So every
run gives a share, and the boundary is the rate at which a logistic curve through the shares, over log(rate), reaches
the limit. A mean is taken as it is, mean over bound on a log scale. Both are means over requests, which short runs
estimate without bias; the percentile itself of a short run is not.

The range is Fieller's: all rates at which the confidence band of the curve contains the limit. How far runs scatter
around the curve is taken from the runs (quasi-likelihood, McCullagh and Nelder 1989, chapter 9), as successive requests
resemble each other near saturation, and never less than independent requests would scatter.

Poisson arrivals make the rate of a window of n requests scatter by 1/√n, which is much of what makes two runs at one
rate differ. It is known exactly, so it is a control variate (Lavenberg and Welch 1981, Management Science 27:3).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

# Runs further from the estimate than this say nothing about the curve at the boundary: in log(rate), and on the curve's
# own scale, where a share of 0.1 has become 0.01 or 0.57 at 2.5.
NEAR, NEAR_ON_CURVE = 0.15, 2.5
# Fewer runs than this do not tell the scatter around a curve of two parameters from its shape.
FEWEST = 5


@dataclass(frozen=True)
class Run:
    """What one run says about one bound. `offered` and `achieved` are requests per second.

    Percentile: `value` is the share of requests over the bound, `limit` the share that may be (0.1 for p90).
    Mean: `value` is mean over bound, `limit` 1. `weight`: the number of requests; for a mean over the squared
    coefficient of variation of one request, so that 1 / weight is the relative variance of the mean either way.
    """

    offered: float
    achieved: float
    value: float
    limit: float
    weight: float

    @property
    def passes(self) -> bool:
        """Whether the bound was met, by the run alone."""
        return self.value <= self.limit


@dataclass(frozen=True)
class Boundary:
    """Where a bound is met: requests per second.

    `passes`: the highest rate shown to pass; `fails`: the lowest rate shown to fail; with `confidence` the boundary
    lies between the two. `rate` is the estimate, `spread` the standard error of its logarithm with `freedom` degrees of
    freedom, `slope` that of the curve. What is not known is None: where no run passed (or failed), or where the runs do
    not rise with the rate. `runs`: how many lie near.
    """

    confidence: float
    runs: int
    rate: float | None = None
    passes: float | None = None
    fails: float | None = None
    spread: float | None = None
    freedom: int = 0
    slope: float | None = None

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
    near = _near(runs, crude, NEAR)
    found = _fit(near, confidence)
    for _ in range(5):  # the curve moves the estimate, and with it what lies near
        if found.rate is None or not found.slope:
            break
        again = _near(runs, found.rate, min(NEAR, NEAR_ON_CURVE / found.slope))
        if again == near:
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


def _near(runs: Sequence[Run], rate: float, reach: float) -> list[Run]:
    by_distance = sorted(runs, key=lambda run: abs(math.log(run.offered / rate)))
    near = [run for run in by_distance if abs(math.log(run.offered / rate)) <= reach]
    return near if len(near) > FEWEST else by_distance[: FEWEST + 1]


def _fit(runs: Sequence[Run], confidence: float) -> Boundary:
    """A curve through `runs`, and where it reaches the limit."""
    nothing = Boundary(confidence, len(runs))
    centre = float(np.mean([math.log(run.offered) for run in runs]))
    x = [math.log(run.offered) - centre for run in runs]
    luck = [math.log(run.achieved / run.offered) for run in runs]
    columns = [np.ones(len(runs)), np.array(x), np.array(luck)]
    # The luck costs a degree of freedom, which few runs do not have to spare.
    design = np.column_stack(columns if len(runs) > FEWEST + 1 else columns[:2])
    freedom = len(runs) - design.shape[1]
    if freedom < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return nothing
    fitted = _curve(design, runs)
    if fitted is None or fitted[0][1] <= 0:
        return nothing
    beta, covariance = fitted
    return _crossing(replace(nothing, freedom=freedom), float(beta[0]), float(beta[1]), covariance, centre)


def _curve(design: np.ndarray, runs: Sequence[Run]) -> tuple[np.ndarray, np.ndarray] | None:
    """(coefficients, their covariance), the first relative to the limit. None where no curve fits."""
    # Here, because it takes a second to import, and only a search or a comparison needs it.
    import statsmodels.api as sm

    limit = runs[0].limit
    family = sm.families.Binomial() if limit < 1 else sm.families.Gamma(sm.families.links.Log())
    model = sm.GLM([run.value for run in runs], design, family=family, var_weights=[run.weight for run in runs])
    with warnings.catch_warnings():  # runs of which each passes or fails outright: the scatter says it, see below
        warnings.simplefilter("ignore")
        try:
            fit = model.fit(scale=1.0)
            scatter = float(fit.pearson_chi2) / (len(runs) - design.shape[1])
        except (ValueError, np.linalg.LinAlgError):
            return None
    covariance = np.asarray(fit.cov_params())[:2, :2] * max(scatter, 1.0)
    beta = np.array(fit.params)
    beta[0] -= float(family.link(limit))
    return (beta, covariance) if np.all(np.isfinite(covariance)) else None


def _crossing(known: Boundary, level: float, slope: float, covariance: np.ndarray, centre: float) -> Boundary:
    """Fieller: the rates at which (level + slope·x)² ≤ t² · variance(level + slope·x)."""
    t = float(stats.t.ppf(0.5 + known.confidence / 2, known.freedom))
    a = slope**2 - t**2 * covariance[1, 1]
    b = 2 * (level * slope - t**2 * covariance[0, 1])
    c = level**2 - t**2 * covariance[0, 0]
    x = -level / slope
    variance = covariance[0, 0] + 2 * x * covariance[0, 1] + x**2 * covariance[1, 1]
    spread = math.sqrt(max(float(variance), 0.0)) / slope
    found = replace(known, rate=math.exp(centre + x), spread=spread, slope=slope)
    inside = b**2 - 4 * a * c
    if a <= 0 or inside < 0:  # that the curve rises is not shown, so neither end is
        return found
    low, high = (-b - math.sqrt(inside)) / (2 * a), (-b + math.sqrt(inside)) / (2 * a)
    return replace(found, passes=math.exp(centre + low), fails=math.exp(centre + high))
