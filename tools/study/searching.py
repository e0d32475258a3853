"""The search of `python -m benchmarks run`, on runs that are simulated: its parts, without folders and processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.boundary import Boundary
from benchmarks.joint_search import conclude, expected, next_of
from benchmarks.measured import Measured
from benchmarks.records import Request
from benchmarks.run_length import Length, plan_length
from benchmarks.search import Limits
from benchmarks.slo import Slo
from benchmarks.steady_state import find_settled

# Sends so many requests at a rate and returns the records of all, in the order of sending.
Measure = Callable[[float, Length], Sequence[Request]]


@dataclass(frozen=True)
class Found:
    """The highest rate under one SLO, and why the search for it ended."""

    rate: Boundary
    reason: str


def explore(
    slos: Mapping[str, Sequence[Slo]],
    limits: Limits,
    measure: Measure,
    first_e2e_s: float,
    least: Length,
    most: int,
    runs: list[Measured],
) -> dict[str, Found]:
    """Search each SLO in turn, until its rate is known. `runs` are those made before; new ones are added to it.

    `first_e2e_s`: what one request is thought to take on a quiet service, in seconds. `least`, `most`: plan_length's.
    """
    found: dict[str, Found] = {}
    for name, bounds in slos.items():
        while (plan := next_of(bounds, runs, limits)).rate is not None:
            length = plan_length(plan.rate, *expected(plan.rate, runs, first_e2e_s), least, most)
            requests = measure(plan.rate, length)
            begins = find_settled(requests, length.warmup).first
            runs.append(Measured(plan.rate, requests[begins:], len(requests)))
        found[name] = Found(conclude(bounds, runs), plan.reason)
    return found
