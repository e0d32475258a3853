"""Study 1: how well, and at what cost, the search finds the highest rate under an SLO whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from pydantic import BaseModel

from benchmarks.explore import explore
from benchmarks.run_length import plan_length
from benchmarks.search import Limits
from benchmarks.steady_state import queue_memory
from tools.study.services import FIRST_E2E_S, LEAST, LIMITS, MOST, Service, measure_on, simulate
from tools.study.truth import true_rate

GRID_STEP = 0.025
# A grid's runs are as long as those of the search: their latency is looked up at this many rates.
GRID_SAMPLES = 8


class Search(BaseModel):
    """One search: its answer (requests per second), and what it cost. `passes` and `fails` are the 90 % range."""

    seed: int
    rate: float | None
    passes: float | None
    fails: float | None
    runs: int
    requests: int
    reason: str


class Capacity(BaseModel):
    """All searches of one service. `grid_requests`: what a grid at steps of 2.5 % sends up to its first
    failing rate.
    """

    service: str
    slo: list[str]
    lowest: float
    highest: float
    truth: float
    grid_runs: int
    grid_requests: int
    searches: list[Search]

    @property
    def within(self) -> float:
        """The largest error of any search, as a part of the truth; infinite where one found nothing."""
        return max(abs(s.rate / self.truth - 1) if s.rate else math.inf for s in self.searches)

    @property
    def covered(self) -> int:
        """How many ranges hold the truth."""
        return sum(bool(s.passes and s.fails and s.passes <= self.truth <= s.fails) for s in self.searches)

    @property
    def dearest(self) -> float:
        """Requests of the search that sent most, as a part of the grid's."""
        return max(s.requests for s in self.searches) / self.grid_requests


def study(service: Service, seeds: Sequence[int], truth: float | None = None) -> Capacity:
    """Search `service` once for each seed. `truth`, if it is known already, saves minutes."""
    known = truth or true_rate(service, service.slo, LIMITS.lowest, LIMITS.highest)
    grid_runs, grid_requests = grid_cost(service, LIMITS.lowest, known)
    with ProcessPoolExecutor() as pool:
        searches = list(pool.map(search_once, [service] * len(seeds), seeds))
    return Capacity(
        service=service.name,
        slo=[str(bound) for bound in service.slo],
        lowest=LIMITS.lowest,
        highest=LIMITS.highest,
        truth=known,
        grid_runs=grid_runs,
        grid_requests=grid_requests,
        searches=searches,
    )


def search_once(service: Service, seed: int, limits: Limits = LIMITS) -> Search:
    """One search, with all its luck from `seed`."""
    runs = []
    found = explore({"slo": service.slo}, limits, measure_on(service, seed), FIRST_E2E_S, LEAST, MOST, runs)
    rate = found["slo"].rate
    return Search(
        seed=seed,
        rate=rate.rate,
        passes=rate.passes,
        fails=rate.fails,
        runs=len(runs),
        requests=sum(run.sent for run in runs),
        reason=found["slo"].reason,
    )


def grid_cost(service: Service, lowest: float, truth: float) -> tuple[int, int]:
    """(runs, requests) of a grid from `lowest` to the first rate beyond `truth`, each run as long as the search's."""
    count = math.ceil(math.log(truth / lowest) / math.log(1 + GRID_STEP)) + 1
    rates = [lowest * (1 + GRID_STEP) ** step for step in range(count)]
    looked_up = [rates[round(place * (count - 1) / (GRID_SAMPLES - 1))] for place in range(GRID_SAMPLES)]
    known = {rate: _known(service, rate) for rate in looked_up}
    nearest = [min(looked_up, key=lambda other, rate=rate: abs(other - rate)) for rate in rates]
    return count, sum(plan_length(rate, *known[at], LEAST, MOST).total for rate, at in zip(rates, nearest, strict=True))


def _known(service: Service, rate: float) -> tuple[float, float]:
    """(mean seconds that a request takes, memory of the queue in requests) at a rate."""
    requests = simulate(service, rate, 4_000, seed=9)[1_000:]
    return sum(request.end_s - request.sent_s for request in requests) / len(requests), queue_memory(requests)
