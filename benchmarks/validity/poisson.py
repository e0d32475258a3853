"""Are times those of a Poisson process? Two tests, each of which sees what the other does not.

Gaps: the distribution of the times between arrivals, against the exponential one, by the largest distance between the
two (Kolmogorov and Smirnov; with the mean taken from the gaps themselves, after Lilliefors). Even spacing and bursts
have other gaps. Counts: the variance of the number of arrivals in equal intervals over its mean, which is 1. A rate
that comes and goes has the right gaps, and the wrong counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Poisson arrivals are beyond it once in a thousand times: the 99.9 % point of the modified statistic, 1.53 to 1.55 in
# 100,000 draws and more of each of 30, 100, 300 and 1000 gaps. (Stephens' table ends at 99 % with 1.308; drawn: 1.29.)
LARGEST_DISTANCE = 1.55
# Standard deviations; either side, once in a thousand.
LARGEST_DEVIATION = 3.3
PER_INTERVAL = 5  # expected arrivals; fewer make the chi-square approximation poor
FEWEST = 20


@dataclass(frozen=True)
class Poissonness:
    """distance: between the gaps' distribution and the exponential one, 0 to 1, and `limit`, the largest that chance
    explains. dispersion: variance of counts over their mean, and how many standard deviations that is from 1.
    """

    distance: float
    limit: float
    dispersion: float
    deviations: float

    @property
    def gaps_fit(self) -> bool:
        return self.distance <= self.limit

    @property
    def counts_fit(self) -> bool:
        return abs(self.deviations) <= LARGEST_DEVIATION


def poissonness(times: Sequence[float]) -> Poissonness | None:
    """Both tests on times in ascending order; None for fewer than FEWEST of them, or all at once."""
    moments = np.asarray(times, dtype=float)
    if moments.size < FEWEST or moments[-1] <= moments[0]:
        return None
    gaps = np.sort(np.diff(moments))
    dispersion, deviations = _counts(moments)
    return Poissonness(_distance(gaps / gaps.mean()), _limit(gaps.size), dispersion, deviations)


def _distance(ordered: np.ndarray) -> float:
    """Largest distance between the empirical distribution and the exponential one of mean 1."""
    expected, ranks = -np.expm1(-ordered), np.arange(ordered.size + 1) / ordered.size
    return float(max((ranks[1:] - expected).max(), (expected - ranks[:-1]).max()))


def _limit(count: int) -> float:
    """Stephens' modification, solved for the distance (Biometrika 1974; D'Agostino and Stephens 1986, table 4.14)."""
    root = math.sqrt(count)
    return LARGEST_DISTANCE / (root + 0.26 + 0.5 / root) + 0.2 / count


def _counts(moments: np.ndarray) -> tuple[float, float]:
    """Dispersion, and its distance from 1 in standard deviations (Wilson and Hilferty's cube root of chi-square)."""
    intervals = max(4, (moments.size - 1) // PER_INTERVAL)
    counts, _ = np.histogram(moments[1:], bins=intervals, range=(moments[0], moments[-1]))
    dispersion = float(counts.var(ddof=1) / counts.mean())
    spread = 2 / (9 * (intervals - 1))
    return dispersion, (dispersion ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
