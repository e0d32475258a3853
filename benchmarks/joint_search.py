"""The highest rate under an SLO of several bounds, each of which has a boundary of its own in the same runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.boundary import NEAR, Boundary, Run, crude_boundary, find_boundary
from benchmarks.measured import Measured
from benchmarks.observation import observe
from benchmarks.search import Limits, Plan, next_rate
from benchmarks.slo import Slo
from benchmarks.steady_state import queue_memory


def next_of(bounds: Sequence[Slo], runs: Sequence[Measured], limits: Limits) -> Plan:
    """The next rate for an SLO: that of the bound that is met up to the lowest rate."""
    answers = {str(slo): answers_of(slo, runs) for slo in bounds}
    return next_rate(min(answers.values(), key=_where), limits)


def conclude(bounds: Sequence[Slo], runs: Sequence[Measured]) -> Boundary:
    """The highest rate under an SLO, from all runs."""
    answers = {str(slo): answers_of(slo, runs) for slo in bounds}
    each = {name: find_boundary(values) for name, values in answers.items()}
    lowest = min(each, key=lambda name: each[name].rate or _where(answers[name]))
    passes = [boundary.passes for boundary in each.values() if boundary.passes is not None]
    fails = [boundary.fails for boundary in each.values() if boundary.fails is not None]
    return replace(each[lowest], passes=min(passes, default=None), fails=min(fails, default=None))


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
