"""The rate at which a simulated service meets its SLO in the long run: what a search is to find."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.observation import observe
from benchmarks.slo import Slo
from tools.study.services import Service, simulate

# Long against the memory of a queue near saturation (some thousand requests), which the head of each run is left for.
REQUESTS, HEAD, SEEDS = 20_000, 4_000, 2
STEPS = (-0.02, -0.01, 0.0, 0.01, 0.02)


def true_rate(service: Service, bounds: Sequence[Slo], lowest: float, highest: float) -> float:
    """The highest rate, in requests per second, at which all bounds are met for ever. To about a thousandth.

    Halving narrows it down on runs of 20,000 requests; a line through the logarithms of five rates, two runs each,
    then takes out most of their scatter.
    """
    low, high = lowest, highest
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if max(_excess(service, bounds, middle, 1)) <= 0 else (low, middle)
    centre = math.sqrt(low * high)
    rates = [centre * (1 + step) for step in STEPS]
    excess = np.array([[_excess(service, bounds, rate, seed) for seed in range(2, 2 + SEEDS)] for rate in rates])
    return min(_crossing(rates, excess[:, :, number].mean(axis=1)) for number in range(len(bounds)))


def _excess(service: Service, bounds: Sequence[Slo], rate: float, seed: int) -> list[float]:
    """For each bound how far it is exceeded: on the scale on which it is nearly a line in log(rate); 0 at the bound."""
    window = simulate(service, rate, REQUESTS, seed)[HEAD:]
    return [observe(bound, window, rate).excess for bound in bounds]


def _crossing(rates: Sequence[float], excess: np.ndarray) -> float:
    slope, level = np.polyfit(np.log(rates), excess, 1)
    return math.exp(-level / slope) if slope > 0 and excess.max() > 0 else math.inf
