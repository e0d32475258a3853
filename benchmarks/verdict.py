"""What a run says, in one sentence: up to which rate its SLO is met, or why its numbers must not be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from benchmarks.highest_rate import HighestRate, SloAnswer
from benchmarks.run_directory import RateResult
from benchmarks.validity import Finding


class Verdict(BaseModel):
    """`outcome`: `met` up to some rate, `not shown` at any, or `unusable`: a fault other than too much load.

    Rates in req/s. best_rate: the highest up to which every rate tried met every SLO without a fault. lowest_not_met:
    the lowest rate above it that did not, or could not be told; None where none was tried. How sure the boundary
    between the two is, the run's `slos` say.
    """

    outcome: Literal["met", "not shown", "unusable"]
    sentence: str
    best_rate: float | None
    lowest_not_met: float | None


def judge_run(
    results: Sequence[RateResult], run_findings: Sequence[Finding], slos: Sequence[SloAnswer] = ()
) -> Verdict:
    """The verdict on at least one finished rate. `results`: lowest rate first; `slos`: what a finished run answers."""
    best = best_rate(results)
    above = [result.rate for result in results if best is None or result.rate > best]
    lowest = above[0] if above else None
    if any(finding.outcome == "fault" for finding in run_findings) or any(result.unusable for result in results):
        return Verdict(outcome="unusable", sentence=UNUSABLE, best_rate=best, lowest_not_met=lowest)
    if slos and (boundary := slos[0].highest).ranged:
        return Verdict(outcome="met", sentence=_up_to(boundary), best_rate=best, lowest_not_met=lowest)
    if slos and slos[0].highest.missed_below is not None:
        sentence = f"No rate is shown up to which the SLO is met; it is {slos[0].highest} req/s."
        return Verdict(outcome="not shown", sentence=sentence, best_rate=best, lowest_not_met=lowest)
    if best is None:
        sentence = f"The SLO is not shown to be met at the lowest rate tried, {results[0].rate:g} req/s."
        return Verdict(outcome="not shown", sentence=sentence, best_rate=None, lowest_not_met=lowest)
    sentence = f"Every SLO is met at {best:g} req/s"
    sentence += " and at every lower rate tried" if results[0].rate < best else ""
    sentence += f", and not at {lowest:g} req/s." if lowest is not None else "; no higher rate was tried."
    return Verdict(outcome="met", sentence=sentence, best_rate=best, lowest_not_met=lowest)


UNUSABLE = "These numbers must not be used."


def _up_to(boundary: HighestRate) -> str:
    return f"Every SLO is met up to {boundary}, with {boundary.confidence:.0%} confidence."


def best_rate(results: Sequence[RateResult]) -> float | None:
    """The highest rate up to which every rate tried met every SLO without a fault; None when the first did not."""
    best: float | None = None
    for result in results:
        if result.summary.slo_met is not True or any(f.outcome == "fault" for f in result.findings):
            break
        best = result.rate
    return best
