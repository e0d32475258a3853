"""One set of runs that answers two SLOs: how many runs the second still needs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import repeat

from pydantic import BaseModel

from benchmarks.measured import Measured
from benchmarks.run_length import Length
from benchmarks.slo import Slo
from tools.study.searching import explore
from tools.study.services import FIRST_E2E_S, LIMITS, MOST, Service, measure_on


class TwoAnswers(BaseModel):
    """One search for two SLOs. runs: those the first needed, what the second needed besides; rates in req/s."""

    seed: int
    runs: tuple[int, int]
    requests: tuple[int, int]
    rates: tuple[float | None, float | None]


class Reuse(BaseModel):
    """All of them for one service."""

    service: str
    first: list[str]
    second: list[str]
    searches: list[TwoAnswers]


def study(service: Service, second: Sequence[Slo], seeds: Sequence[int], least: Length) -> Reuse:
    """Search for the service's own SLO and then for `second`, once for each seed."""
    with ProcessPoolExecutor() as pool:
        searches = list(pool.map(_search_two, repeat(service), repeat(second), seeds, repeat(least)))
    return Reuse(
        service=service.name,
        first=[str(bound) for bound in service.slo],
        second=[str(bound) for bound in second],
        searches=searches,
    )


def _search_two(service: Service, second: Sequence[Slo], seed: int, least: Length) -> TwoAnswers:
    runs: list[Measured] = []
    measure = measure_on(service, seed)
    one = explore({"slo": service.slo}, LIMITS, measure, FIRST_E2E_S, least, MOST, runs)["slo"]
    sent, needed = sum(run.sent for run in runs), len(runs)
    # As a run does: the allowance is for each SLO (benchmarks/course.py).
    limits = replace(LIMITS, most_runs=2 * LIMITS.most_runs)
    other = explore({"also": second}, limits, measure, FIRST_E2E_S, least, MOST, runs)["also"]
    return TwoAnswers(
        seed=seed,
        runs=(needed, len(runs) - needed),
        requests=(sent, sum(run.sent for run in runs) - sent),
        rates=(one.rate.rate, other.rate.rate),
    )
