"""Does a series of correlated values rise? Judged on the means of a few batches, not on single values.

Near saturation a request waits about as long as the one before it, so that a t-test on single requests finds a trend in
every clean run. Means of long batches are nearly independent, and what correlation is left between them (that of each
with the next, about the fitted line) widens the error of the slope as for an autoregressive series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.records import Request

BATCHES = 10


@dataclass(frozen=True)
class Trend:
    """A line through the batch means. first, last: its ends; mean: of all; sigmas: its slope over the slope's error."""

    first: float
    last: float
    mean: float
    sigmas: float

    @property
    def rise(self) -> float:
        """From one end to the other, over the mean."""
        return (self.last - self.first) / self.mean if self.mean > 0 else 0.0

    @property
    def reversed(self) -> Trend:
        """The same with time running backwards: what falls, rises."""
        return Trend(self.last, self.first, self.mean, -self.sigmas)


def trend(means: np.ndarray) -> Trend:
    """The line through equally distant values, of which there must be four at least."""
    places = np.arange(means.size) - (means.size - 1) / 2
    slope = float((places * means).sum() / (places**2).sum())
    left = means - means.mean() - slope * places
    variance = float((left**2).sum()) / (means.size - 2)
    following = float((left[1:] * left[:-1]).sum() / (left**2).sum()) if variance > 0 else 0.0
    following = min(max(following, 0.0), 0.9)
    error = math.sqrt(variance / (places**2).sum() * (1 + following) / (1 - following))
    half = slope * float(places[-1])
    mean = float(means.mean())
    sigmas = slope / error if error > 0 else math.copysign(math.inf, slope) if slope else 0.0
    return Trend(mean - half, mean + half, mean, sigmas)


def batch_means(values: Sequence[float], batches: int = BATCHES) -> np.ndarray:
    """Means of equally many successive values; the first few are left out where they do not divide."""
    size = len(values) // batches
    return np.asarray(values[len(values) - size * batches :], dtype=float).reshape(batches, size).mean(axis=1)


def in_flight(requests: Sequence[Request], start: float, end: float, batches: int = BATCHES) -> np.ndarray:
    """Mean number of requests that were sent and not answered, in each of equally long parts of a time."""
    edges = np.linspace(start, end, batches + 1)
    sent, ended = (np.array([getattr(r, name) for r in requests]) for name in ("sent_s", "end_s"))
    low, high = edges[:-1, None], edges[1:, None]
    inside = np.clip(np.minimum(ended, high) - np.maximum(sent, low), 0.0, None)
    return inside.sum(axis=1) / (edges[1:] - edges[:-1])
