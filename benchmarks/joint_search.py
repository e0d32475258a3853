"""The highest rate under an SLO of several bounds, each of which has a boundary of its own in the same runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.boundary import FURTHEST, NEAR, Boundary, Run, crude_boundary, find_boundary
from benchmarks.measured import Measured
from benchmarks.observation import observe
from benchmarks.search import Limits, Plan, next_rate
from benchmarks.slo import Slo
from benchmarks.steady_state import queue_memory

# The criterion beside the bounds: latencies of a rate that is too much for the service do not count as met.
CARRIED = "carried without overload"
# A run so far on the wrong side of its bound comes about by chance once in a thousand runs (Student's t).
CHANCE = 0.001


def next_of(bounds: Sequence[Slo], runs: Sequence[Measured], limits: Limits) -> Plan:
    """The next rate for an SLO: that of the bound that is met up to the lowest rate."""
    return next_rate(min(answers_of(bounds, runs).values(), key=_where), limits)


def conclude(bounds: Sequence[Slo], runs: Sequence[Measured], confidence: float = 0.90) -> Boundary:
    """The highest rate under an SLO, from all runs.

    Nothing is known where a bound is missed at every rate, whatever the others do; nor where rates are met and missed
    out of order, as no single rate parts them. The range is known where each bound that may set its lower end has one.
    """
    answers = answers_of(bounds, runs)
    if not runs or any(_where(values) == 0 for values in answers.values()) or out_of_order(bounds, runs):
        return Boundary(confidence, 0)
    each = _crossed(answers, confidence)
    if not each:
        return Boundary(confidence, 0)
    lowest = min(each.values(), key=lambda boundary: boundary.rate or math.inf)
    passes = [boundary.passes for boundary in each.values() if boundary.passes is not None]
    fails = [boundary.fails for boundary in each.values() if boundary.fails is not None]
    joint = replace(lowest, passes=min(passes, default=None), fails=min(fails, default=None))
    open_ended = [answers[name] for name, boundary in each.items() if boundary.passes is None]
    if lowest.passes is None or not all(_met_up_to(joint.fails, values) for values in open_ended):
        return replace(joint, passes=None, fails=None)
    return joint


def answers_of(bounds: Sequence[Slo], runs: Sequence[Measured]) -> dict[str, list[Run]]:
    """What all runs say about each criterion of an SLO: its bounds, and whether the service carried the rate at all.

    That some rate is too much shows as a finding and has no measure, so that it says no more than a side.
    """
    answers = {str(slo): [observe(slo, run.window, run.rate) for run in runs] for slo in bounds}
    if any(run.overloaded for run in runs):
        answers[CARRIED] = [Run(run.rate, run.rate, FURTHEST if run.overloaded else -FURTHEST) for run in runs]
    return answers


def met(bounds: Sequence[Slo], runs: Sequence[Measured]) -> list[bool]:
    """For each run, whether it meets the whole SLO by itself."""
    return [all(one.passes for one in each) for each in zip(*answers_of(bounds, runs).values(), strict=True)]


def out_of_order(bounds: Sequence[Slo], runs: Sequence[Measured]) -> tuple[float, float] | None:
    """(a rate that misses the SLO, a higher one that meets it), where that is no chance; None where it is met up to
    some rate and not beyond. Requests per second.
    """
    answers = answers_of(bounds, runs)
    latencies = {name: values for name, values in answers.items() if name != CARRIED}
    if not any(_contradicted(latencies[name], found) for name, found in _crossed(latencies, 0.90).items()):
        return None  # findings of overload come by chance near saturation: those cost the range, and no more
    all_met = met(bounds, runs)
    missed = min(run.rate for run, passes in zip(runs, all_met, strict=True) if not passes)
    kept = max((run.rate for run, passes in zip(runs, all_met, strict=True) if passes), default=0.0)
    return (missed, kept) if kept > missed else None


def _contradicted(runs: Sequence[Run], found: Boundary) -> bool:
    """Whether a run far from a boundary is on its wrong side by more than runs scatter."""
    if found.rate is None:
        return False
    from scipy import stats  # see benchmarks/boundary.py

    chance = float(stats.t.ppf(1 - CHANCE, found.freedom or found.runs - 1)) * (found.scatter or 0.0)
    distances = [(math.log(run.offered / found.rate), run) for run in runs]
    return any(
        (away < -NEAR and not run.passes and run.excess >= min(chance, FURTHEST))
        or (away > NEAR and run.passes and -run.excess >= min(chance, FURTHEST))
        for away, run in distances
    )


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


def _crossed(answers: Mapping[str, Sequence[Run]], confidence: float) -> dict[str, Boundary]:
    """The boundary of each criterion that is met by some runs and missed by others."""
    return {
        name: find_boundary(values, confidence) for name, values in answers.items() if 0 < _where(values) < math.inf
    }


def _met_up_to(rate: float | None, runs: Sequence[Run]) -> bool:
    """Whether a criterion without a range is met at all rates up to `rate`, so that it cannot lower a range there."""
    return rate is not None and all(run.passes for run in runs if run.offered <= rate)


def _where(runs: Sequence[Run]) -> float:
    """Up to about which rate a bound is met; 0 if at none, infinite if at all."""
    crude = crude_boundary(runs)
    if crude is not None:
        return crude
    return math.inf if all(run.passes for run in runs) else 0.0
