"""The rate at which a simulated service meets its SLO in the long run: what a search is to find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from pydantic import BaseModel

from benchmarks.boundary import Run
from benchmarks.observation import observe
from tools.study.services import LIMITS, Service, simulate

# Windows long against the memory of a queue near saturation (some hundred requests), after a head that is left out.
WINDOW, HEAD = 20_000, 4_000
NARROW = 1.02
STEPS = (-0.02, -0.015, -0.01, -0.005, 0.005, 0.01, 0.015, 0.02)
RUNS_OF_A_STEP = 6


class Truth(BaseModel):
    """The highest rate, in requests per second, at which all bounds are met for ever; `bound`: the one that sets it.

    error: its standard error, as a part of it.
    """

    rate: float
    error: float
    bound: str


def true_rate(service: Service) -> Truth:
    """Halving narrows the rate down to 2 %; a line through the logarithms of 48 runs around it then gives it.

    No two runs have a seed in common: Poisson arrivals of one seed are the same at every rate but for their scale, so
    that runs at five rates would share the luck of one.
    """
    low, high, seeds = LIMITS.lowest, LIMITS.highest, iter(range(500, 600))
    while high / low > NARROW:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if all(run.passes for run in _run(service, middle, next(seeds))) else (low, middle)
    rates = [math.sqrt(low * high) * (1 + step) for step in STEPS for _ in range(RUNS_OF_A_STEP)]
    with ProcessPoolExecutor() as pool:
        runs = list(pool.map(_run, [service] * len(rates), rates, range(len(rates))))
    found = {str(slo): crossing([run[number] for run in runs]) for number, slo in enumerate(service.slo)}
    bound = min(found, key=lambda name: found[name][0])
    return Truth(rate=found[bound][0], error=found[bound][1], bound=bound)


def _run(service: Service, rate: float, seed: int) -> list[Run]:
    """What one long run says about each bound."""
    window = simulate(service, rate, HEAD + WINDOW, seed)[HEAD:]
    return [observe(slo, window, rate) for slo in service.slo]


def crossing(runs: Sequence[Run]) -> tuple[float, float]:
    """(rate, standard error of its logarithm) at which the excess is 0: infinite for a bound that no run exceeds.

    By least squares over log(rate), and over how far the arrivals missed their rate, which is known of each run.
    Written out here, and not taken from benchmarks/boundary.py, which is what the studies examine.
    """
    if all(run.passes for run in runs):
        return math.inf, 0.0
    centre = float(np.mean([math.log(run.offered) for run in runs]))
    rows = [(1.0, math.log(run.offered) - centre, math.log(run.achieved / run.offered)) for run in runs]
    design, excess = np.array(rows), np.array([run.excess for run in runs])
    (level, slope, luck), *_ = np.linalg.lstsq(design, excess, rcond=None)
    rest = excess - design @ np.array([level, slope, luck])
    covariance = np.linalg.inv(design.T @ design) * float(rest @ rest) / (len(runs) - 3)
    at = np.array([1.0, -level / slope, 0.0])
    return math.exp(centre - level / slope), math.sqrt(float(at @ covariance @ at)) / abs(slope)
