"""What a run measures next: the rates of a sweep in their order, or those that a search asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.joint_search import expected, next_of
from benchmarks.measured import Measured
from benchmarks.run_length import Length, plan_length
from benchmarks.scenario import Scenario
from benchmarks.search import Limits

# A rate is the name of its folder, and is measured once in a run: one that is taken makes way by this part.
_ASIDE = 0.001


@dataclass(frozen=True)
class Step:
    """A rate to measure, in requests per second, how many requests that takes, and why it is this rate."""

    rate: float
    length: Length
    reason: str


def next_step(scenario: Scenario, measured: Sequence[Measured], idle_e2e_s: float) -> Step | None:
    """The next rate of a run that has `measured` these; None when it is complete.

    idle_e2e_s: seconds that a request takes on the quiet service, which is all that is known of the first.
    """
    wanted = _of_a_search(scenario, measured) if scenario.search else _of_a_sweep(scenario, measured)
    if wanted is None:
        return None
    rate, reason = wanted
    least = Length(scenario.warmup_requests(rate), scenario.measured_requests(rate))
    length = plan_length(rate, *expected(rate, measured, idle_e2e_s), least, scenario.max_requests)
    return Step(rate, length, reason)


def _of_a_sweep(scenario: Scenario, measured: Sequence[Measured]) -> tuple[float, str] | None:
    done = {run.rate for run in measured}
    left = [rate for rate in scenario.rates if rate not in done]
    return (left[0], f"{len(done) + 1} of {len(scenario.rates)}") if left else None


def _of_a_search(scenario: Scenario, measured: Sequence[Measured]) -> tuple[float, str] | None:
    """Each SLO in turn, all from the same runs: what one has found, the next begins with."""
    assert scenario.search is not None  # noqa: S101
    for number, bounds in enumerate(scenario.slo_sets.values(), start=1):
        limits = Limits(
            scenario.search.lowest,
            scenario.search.highest,
            scenario.search.half_width,
            scenario.search.most_runs * number,
        )
        plan = next_of(bounds, measured, limits)
        if plan.rate is not None:
            return _not_taken(plan.rate, measured), plan.reason
    return None


def _not_taken(rate: float, measured: Sequence[Measured]) -> float:
    taken, found = {run.rate for run in measured}, float(f"{rate:.4g}")
    while found in taken:
        found = float(f"{found * (1 + _ASIDE):.4g}")
    return found
