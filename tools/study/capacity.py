"""Study 1: how well, and at what cost, the search finds the highest rate under an SLO whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

from pydantic import BaseModel

from benchmarks.boundary import Boundary
from benchmarks.measured import Measured
from benchmarks.run_length import Length, plan_length
from benchmarks.steady_state import queue_memory
from tools.study.searching import explore
from tools.study.services import FIRST_E2E_S, LIMITS, MOST, Service, measure_on, simulate
from tools.study.truth import Truth

GRID_STEP = 0.025
# A grid's runs are as long as those of the search: their latency is looked up at this many rates.
GRID_SAMPLES = 8


class Search(BaseModel):
    """One search: its answer (requests per second), and what it cost. `passes` and `fails` are the 90 % range, `spread`
    and `freedom` those of benchmarks/boundary.py.
    """

    seed: int
    rate: float | None
    passes: float | None
    fails: float | None
    spread: float | None
    freedom: int
    runs: int
    requests: int
    reason: str

    @property
    def boundary(self) -> Boundary:
        """The answer as a comparison takes it."""
        return Boundary(0.90, self.runs, self.rate, self.passes, self.fails, self.spread, self.freedom)


class Capacity(BaseModel):
    """All searches of one service. `window`: requests that one has at least; `grid_requests`: what a grid at steps of
    2.5 % sends up to its first failing rate.
    """

    service: str
    slo: list[str]
    window: int
    truth: Truth
    grid_runs: int
    grid_requests: int
    searches: list[Search]

    @property
    def errors(self) -> list[float]:
        """How far each search is off, as a part of the truth; infinite where one found nothing."""
        return [s.rate / self.truth.rate - 1 if s.rate else math.inf for s in self.searches]

    @property
    def within(self) -> float:
        """The largest error, whatever its sign."""
        return max(map(abs, self.errors))

    @property
    def covered(self) -> int:
        """How many ranges hold the truth."""
        return sum(bool(s.passes and s.fails and s.passes <= self.truth.rate <= s.fails) for s in self.searches)

    @property
    def parts(self) -> list[float]:
        """Requests of each search, as a part of the grid's."""
        return [s.requests / self.grid_requests for s in self.searches]


def study(service: Service, truth: Truth, seeds: Sequence[int], window: int) -> Capacity:
    """Search `service` once for each seed, with at least `window` requests in each measured window."""
    least = Length(warmup=0, measured=window)
    grid_runs, grid_requests = grid_cost(service, truth.rate, least)
    return Capacity(
        service=service.name,
        slo=[str(bound) for bound in service.slo],
        window=window,
        truth=truth,
        grid_runs=grid_runs,
        grid_requests=grid_requests,
        searches=search_all(service, seeds, least),
    )


def search_all(service: Service, seeds: Sequence[int], least: Length) -> list[Search]:
    """A search for each seed."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(search_once, repeat(service), seeds, repeat(least)))


def search_once(service: Service, seed: int, least: Length) -> Search:
    """One search, with all its luck from `seed`."""
    runs: list[Measured] = []
    found = explore({"slo": service.slo}, LIMITS, measure_on(service, seed), FIRST_E2E_S, least, MOST, runs)["slo"]
    return Search(
        seed=seed,
        rate=found.rate.rate,
        passes=found.rate.passes,
        fails=found.rate.fails,
        spread=found.rate.spread,
        freedom=found.rate.freedom,
        runs=len(runs),
        requests=sum(run.sent for run in runs),
        reason=found.reason,
    )


def grid_cost(service: Service, truth: float, least: Length) -> tuple[int, int]:
    """(runs, requests) of a grid from the lowest rate to the first beyond `truth`, each run as long as plan_length has
    it for a search that knows that rate.
    """
    count = math.ceil(math.log(truth / LIMITS.lowest) / math.log(1 + GRID_STEP)) + 1
    rates = [LIMITS.lowest * (1 + GRID_STEP) ** step for step in range(count)]
    looked_up = [rates[round(place * (count - 1) / (GRID_SAMPLES - 1))] for place in range(GRID_SAMPLES)]
    known = {rate: _known(service, rate) for rate in looked_up}
    nearest = [min(looked_up, key=lambda other, rate=rate: abs(other - rate)) for rate in rates]
    return count, sum(plan_length(rate, *known[at], least, MOST).total for rate, at in zip(rates, nearest, strict=True))


def _known(service: Service, rate: float) -> tuple[float, float]:
    """(mean seconds that a request takes, memory of the queue in requests) at a rate."""
    requests = simulate(service, rate, 4_000, seed=9)[1_000:]
    return sum(request.end_s - request.sent_s for request in requests) / len(requests), queue_memory(requests)
