"""Which rate to measure next, so that the boundary of an SLO is known soon. Pure: it never measures itself.

First the range of rates is halved (in log) until the boundary is known to a seventh. Then runs are put on both sides of
the estimate, until the range of the boundary is as narrow as asked
for. Runs of an earlier search count, whatever they were made for: one set of runs answers many SLOs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.boundary import NEAR, Run, crude_boundary, find_boundary
from benchmarks.scenario_parts import FEWEST_RUNS

BRACKET = 1.15
# That one run passes may be chance; so many are what a comparison needs of a side without a boundary (shown_met.py).
RUNS_AT_THE_END = 3
# That one run fails may be chance as well. Fewer than at the other end: higher rates have failed before the lowest did,
# and a run at the lowest rate takes longest.
RUNS_AT_THE_BEGINNING = 2
# Where runs go, in turn, in parts of the estimate: wide enough for a line to be told from its scatter.
PLACES = (-0.04, 0.04, -0.08, 0.06, -0.02, 0.02, -0.06, 0.08)


@dataclass(frozen=True)
class Limits:
    """Between which rates (requests per second) to search, the half-width to stop at, and the most runs to spend."""

    lowest: float
    highest: float
    half_width: float = 0.03
    most_runs: int = 16


@dataclass(frozen=True)
class Plan:
    """What to do next: measure at `rate`, or stop if it is None. `reason` says why, in a few words."""

    rate: float | None
    reason: str


def next_rate(runs: Sequence[Run], limits: Limits) -> Plan:
    """How a search goes on after `runs`."""
    passes = [run.offered for run in runs if run.passes]
    fails = [run.offered for run in runs if not run.passes]
    at_the_end = sum(rate >= limits.highest for rate in passes)
    if at_the_end >= RUNS_AT_THE_END and not fails:
        return Plan(None, f"the highest rate, {limits.highest:g} req/s, passes")
    at_the_beginning = sum(rate <= limits.lowest for rate in fails)
    if at_the_beginning >= RUNS_AT_THE_BEGINNING and not passes:
        return Plan(None, f"the lowest rate, {limits.lowest:g} req/s, fails")
    if len(runs) >= limits.most_runs:
        return Plan(None, f"{limits.most_runs} runs are the most that it may take")
    if at_the_end and not fails:
        return Plan(limits.highest, f"passing run {at_the_end + 1} of {RUNS_AT_THE_END} at the highest rate")
    if at_the_beginning and not passes:
        return Plan(limits.lowest, f"failing run {at_the_beginning + 1} of {RUNS_AT_THE_BEGINNING} at the lowest rate")
    crude = crude_boundary(runs)
    if crude is None:
        return Plan(_towards_the_missing(passes, fails, limits), "looking for a rate that passes and one that fails")
    low = max((rate for rate in passes if rate <= crude), default=limits.lowest)
    high = min((rate for rate in fails if rate >= crude), default=limits.highest)
    if high / low > BRACKET:
        return Plan(math.sqrt(low * high), f"halving {low:.3g} to {high:.3g} req/s")
    return _closing_in(runs, crude, limits)


def _towards_the_missing(passes: Sequence[float], fails: Sequence[float], limits: Limits) -> float:
    low, high = max(passes, default=limits.lowest), min(fails, default=limits.highest)
    if high / low <= BRACKET:  # close to an end of the range: the end itself
        return high if passes else low
    return math.sqrt(low * high)


def _closing_in(runs: Sequence[Run], crude: float, limits: Limits) -> Plan:
    found = find_boundary(runs)
    if found.half_width <= limits.half_width and found.runs >= FEWEST_RUNS:
        return Plan(None, f"known to ±{found.half_width:.1%}")
    centre = crude
    if found.rate is not None and abs(math.log(found.rate / crude)) < NEAR:
        centre = found.rate
    near = sum(abs(math.log(run.offered / centre)) <= NEAR for run in runs)
    # Where no line holds, runs at the edge of what is near say little, and those beside the boundary all there is.
    place = PLACES[near % len(PLACES)] / (2 if found.bent else 1)
    rate = centre * (1 + place)
    return Plan(min(max(rate, limits.lowest), limits.highest), "closing in")
