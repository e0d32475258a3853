"""Was a stretch of a series unlike the rest of it: a step up or down, or a while of something else?

A line through the window sees what grows, and not what changes at once: half a step is scatter to it. Each stretch of
successive batches is held against all other batches, in the logarithm, and the one that is furthest off in its own
errors is the change. What correlation is left between batches (that of each with the next) widens the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.validity.trend import batch_means

BATCHES = 20
FEWEST = 10  # values in a batch: the logarithms of fewer are far from normal
_SHORTEST = 2  # batches of a stretch; one alone has no scatter to be judged by
_FLOOR = 1e-8  # variance of logarithms: values that are all the same differ by the error of arithmetic


@dataclass(frozen=True)
class Change:
    """The stretch from `start` to `end`, as parts of the series: how many times the rest it is, in how many errors."""

    start: float
    end: float
    times: float
    sigmas: float

    @property
    def size(self) -> float:
        """How far the two levels are apart, over the lower."""
        return max(self.times, 1 / self.times) - 1


def find_change(values: Sequence[float]) -> Change | None:
    """The greatest change in values above 0; None where there are too few to tell."""
    if len(values) < FEWEST * BATCHES:
        return None
    means = batch_means(np.log(values).tolist(), BATCHES)
    stretches = [
        (start, end)
        for start in range(BATCHES)
        for end in range(start + _SHORTEST, BATCHES + 1)
        if end - start <= BATCHES - _SHORTEST
    ]
    return max((_held(means, start, end) for start, end in stretches), key=lambda change: change.sigmas)


def _held(means: np.ndarray, start: int, end: int) -> Change:
    inside = np.zeros(means.size, dtype=bool)
    inside[start:end] = True
    levels = float(means[inside].mean()), float(means[~inside].mean())
    left = means - np.where(inside, *levels)
    squares = float(left @ left)
    following = float(left[1:] @ left[:-1]) / squares if squares > 0 else 0.0
    following = min(max(following, 0.0), 0.9)
    variance = max(squares / (means.size - 2), _FLOOR) * (1 + following) / (1 - following)
    error = math.sqrt(variance * (1 / (end - start) + 1 / (means.size - end + start)))
    difference = levels[0] - levels[1]
    return Change(start / means.size, end / means.size, math.exp(difference), abs(difference) / error)
