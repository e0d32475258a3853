"""Study 3: does a comparison find a difference where there is none, and one of 1.3 times where there is?"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from pydantic import BaseModel

from benchmarks.boundary import Boundary
from benchmarks.explore import explore
from benchmarks.measured import Measured
from benchmarks.ratio import Ratio, ratio
from tools.simulated_server.model import Speed
from tools.study.services import FIRST_E2E_S, LEAST, LIMITS, MOST, Service, measure_on
from tools.study.truth import true_rate


class Comparisons(BaseModel):
    """Comparisons of two services, each with searches of its own on both. `truth` is the true ratio of their rates."""

    base: str
    candidate: str
    truth: float
    ratios: list[Ratio]

    def count(self, verdict: str) -> int:
        """How many comparisons ended so."""
        return sum(item.verdict == verdict for item in self.ratios)


def study(base: Service, candidate: Service, truth: float, seeds: Sequence[int]) -> Comparisons:
    """Compare `candidate` with `base` once for each seed."""
    with ProcessPoolExecutor() as pool:
        ratios = list(pool.map(_compare, [base] * len(seeds), [candidate] * len(seeds), seeds))
    return Comparisons(base=base.name, candidate=candidate.name, truth=truth, ratios=ratios)


def faster(service: Service, factor: float) -> Service:
    """The same service with every step `factor` times as fast."""
    speed = service.arrangement.speed
    quick: Speed = replace(
        speed,
        base=speed.base / factor,
        per_sequence=speed.per_sequence / factor,
        per_prompt_token=speed.per_prompt_token / factor,
    )
    arrangement = replace(service.arrangement, speed=quick)
    return replace(service, name=f"{service.name}, {factor:g} times as fast", arrangement=arrangement)


def true_ratio(base: Service, candidate: Service) -> float:
    """The true ratio of the two rates."""
    rates = [true_rate(side, side.slo, LIMITS.lowest, LIMITS.highest) for side in (base, candidate)]
    return rates[1] / rates[0]


def _compare(base: Service, candidate: Service, seed: int) -> Ratio:
    # No seed twice: searches that share their luck would find no difference for the wrong reason.
    return ratio(_boundary(base, 2 * seed), _boundary(candidate, 2 * seed + 1))


def _boundary(service: Service, seed: int) -> Boundary:
    runs: list[Measured] = []
    measure = measure_on(service, seed)
    return explore({"slo": service.slo}, LIMITS, measure, FIRST_E2E_S, LEAST, MOST, runs)["slo"].rate
