"""The search for the highest rate under each SLO of a scenario: one set of runs, measured by whoever is asked to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.boundary import NEAR, Boundary, Run, crude_boundary, find_boundary
from benchmarks.measured import Measured
from benchmarks.observation import observe
from benchmarks.records import Request
from benchmarks.run_length import Length, plan_length
from benchmarks.search import Limits, Plan, next_rate
from benchmarks.slo import Slo
from benchmarks.steady_state import find_settled, queue_memory

# Sends so many requests at a rate and returns the records of all, in the order of sending.
Measure = Callable[[float, Length], Sequence[Request]]


@dataclass(frozen=True)
class Found:
    """The highest rate under one SLO: every bound's own boundary, and the lowest of them. `reason`: why it ended."""

    bounds: Mapping[str, Boundary]
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
        found[name] = conclude(bounds, runs, plan.reason)
    return found


def next_of(bounds: Sequence[Slo], runs: Sequence[Measured], limits: Limits) -> Plan:
    """The next rate for an SLO: that of the bound that is met up to the lowest rate."""
    answers = {str(slo): answers_of(slo, runs) for slo in bounds}
    return next_rate(min(answers.values(), key=_where), limits)


def conclude(bounds: Sequence[Slo], runs: Sequence[Measured], reason: str) -> Found:
    """The highest rate under an SLO, from all runs."""
    answers = {str(slo): answers_of(slo, runs) for slo in bounds}
    each = {name: find_boundary(values) for name, values in answers.items()}
    lowest = min(each, key=lambda name: each[name].rate or _where(answers[name]))
    passes = [boundary.passes for boundary in each.values() if boundary.passes is not None]
    fails = [boundary.fails for boundary in each.values() if boundary.fails is not None]
    both = replace(each[lowest], passes=min(passes, default=None), fails=min(fails, default=None))
    return Found(each, both, reason)


def answers_of(slo: Slo, runs: Sequence[Measured]) -> list[Run]:
    """What all runs say about one bound."""
    return [observe(slo, run.window, run.rate) for run in runs]


def expected(rate: float, runs: Sequence[Measured], first_e2e_s: float) -> tuple[float, float]:
    """(seconds that a request takes, memory of the queue in requests) at `rate`, as far as runs near it have shown.

    The longest memory of those near: each run shows only as much of it as it is long.
    """
    if not runs:
        return first_e2e_s, 1.0
    nearest = min(runs, key=lambda run: abs(math.log(run.rate / rate)))
    e2e_s = float(np.mean([request.end_s - request.sent_s for request in nearest.window]))
    near = [run for run in runs if abs(math.log(run.rate / rate)) <= NEAR / 2] or [nearest]
    return e2e_s, max(queue_memory(run.window) for run in near)


def _where(runs: Sequence[Run]) -> float:
    """Up to about which rate a bound is met; 0 if at none, infinite if at all."""
    crude = crude_boundary(runs)
    if crude is not None:
        return crude
    return math.inf if all(run.passes for run in runs) else 0.0
