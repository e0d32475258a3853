"""How many times the rate of one boundary another one is, with a range, and whether that is a difference at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from benchmarks.boundary import REACH, Boundary

# A comparison asks many questions (each SLO, each latency), and one false "difference" makes a wrong decision:
# at 99 % one question in a hundred is answered so by chance.
CONFIDENCE = 0.99

Verdict = Literal["more", "less", "no difference shown", "not known"]


class Ratio(BaseModel):
    """Candidate over base: estimate and range. `low` or `high` is None where only one end is known.

    verdict: `more` or `less` where the range leaves out 1, `not known` where the boundaries themselves are not.
    """

    verdict: Verdict
    confidence: float = CONFIDENCE
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


def ratio(base: Boundary, candidate: Boundary) -> Ratio:
    """Compare two boundaries that were measured independently (Welch and Satterthwaite's t on their logarithms).

    Not known where one has no range: its spread is then that of a line which is not shown to cross its bound.
    """
    if base.rate is None or candidate.rate is None or not base.spread or not candidate.spread:
        return Ratio(verdict="not known")
    if math.isinf(base.half_width) or math.isinf(candidate.half_width):
        return Ratio(verdict="not known")
    difference = math.log(candidate.rate / base.rate)
    found = _welch(difference, [(base.spread**2, base.freedom), (candidate.spread**2, candidate.freedom)])
    return Ratio(verdict="not known") if found.high and math.log(found.high) - difference > REACH else found


def ratio_of_runs(base: Sequence[float], candidate: Sequence[float]) -> Ratio:
    """Compare the means of repeated runs, two at least on each side, by the scatter between them.

    Values are above 0, and those of one side differ at least. The t is of their logarithms, so the estimate is the
    ratio of geometric means.
    """
    means: list[float] = []
    parts: list[tuple[float, float]] = []
    for runs in (base, candidate):
        logs = [math.log(value) for value in runs]
        mean, freedom = sum(logs) / len(logs), len(logs) - 1
        means.append(mean)
        parts.append((sum((value - mean) ** 2 for value in logs) / freedom / len(logs), freedom))
    return _welch(means[1] - means[0], parts)


def _welch(difference: float, parts: Sequence[tuple[float, float]]) -> Ratio:
    """From a difference of logarithms, and of each side the variance of its mean and that one's degrees of freedom."""
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / free for part, free in parts)
    from scipy import stats  # see benchmarks/boundary.py

    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.sqrt(variance)
    # A scatter beyond all sense (two runs, one of which stalled) is a range from 0 up to as much as a float holds.
    low, high = math.exp(max(difference - reach, -700)), math.exp(min(difference + reach, 700))
    verdict: Verdict = "more" if low > 1 else "less" if high < 1 else "no difference shown"
    return Ratio(verdict=verdict, estimate=math.exp(difference), low=low, high=high)
