"""The rate that each of two deployments serves under each SLO, held against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from benchmarks.highest_rate import HighestRate, highest_rate
from benchmarks.joint_search import conclude
from benchmarks.measured import Measured
from benchmarks.ratio import CONFIDENCE, Ratio, ratio
from benchmarks.shown_met import shown_met
from benchmarks.slo import Slo


class SloComparison(BaseModel):
    """One SLO: its bounds in words, both sides, candidate over base, and what that says in a sentence."""

    name: str
    bounds: list[str]
    base: HighestRate
    candidate: HighestRate
    ratio: Ratio
    sentence: str


def compare_slos(
    slos: Mapping[str, Sequence[Slo]],
    base: tuple[str, Sequence[Measured]],
    candidate: tuple[str, Sequence[Measured]],
) -> list[SloComparison]:
    """Compare two sides, each a name and all runs made on it, under every SLO."""
    found: list[SloComparison] = []
    for name, bounds in slos.items():
        ours = [conclude(bounds, runs) for _, runs in (base, candidate)]
        ranges = [highest_rate(bounds, runs) for _, runs in (base, candidate)]
        how = _one_sided(bounds, base[1], candidate[1]) or ratio(*ours)
        words = [str(bound) for bound in bounds]
        sentence = _sentence(words, base[0], candidate[0], ranges, how)
        found.append(
            SloComparison(name=name, bounds=words, base=ranges[0], candidate=ranges[1], ratio=how, sentence=sentence)
        )
    return found


def _one_sided(bounds: Sequence[Slo], base: Sequence[Measured], candidate: Sequence[Measured]) -> Ratio | None:
    """How much more, at least, where one side has a boundary and the other is shown to meet the SLO beyond it."""
    if (times := _beyond(bounds, base, candidate)) is not None:
        return Ratio(verdict="more", low=times)
    if (times := _beyond(bounds, candidate, base)) is not None:
        return Ratio(verdict="less", high=1 / times)
    return None


def _beyond(bounds: Sequence[Slo], bounded: Sequence[Measured], other: Sequence[Measured]) -> float | None:
    """How many times the lowest rate at which `bounded` is shown to fail `other` is shown to pass; None if not above 1.

    Each of the two errs in half of the cases that CONFIDENCE leaves, so that both hold with CONFIDENCE.
    """
    fails = conclude(bounds, bounded, CONFIDENCE).fails
    passes = shown_met(bounds, other, 0.5 + CONFIDENCE / 2)
    return passes / fails if fails is not None and passes is not None and passes > fails else None


def _sentence(words: Sequence[str], base: str, candidate: str, ranges: Sequence[HighestRate], how: Ratio) -> str:
    under = " and ".join(words)
    if how.estimate is None and how.low is not None:
        return f"{candidate} serves at least {how.low:.2f}× the rate of {base} under {under}"
    if how.estimate is None and how.high is not None:
        return f"{candidate} serves at most {how.high:.2f}× the rate of {base} under {under}"
    if how.verdict in ("more", "less"):
        return (
            f"{candidate} serves {how.estimate:.2f}× [{how.low:.2f} to {how.high:.2f}] the rate of {base} under {under}"
        )
    if how.verdict == "no difference shown":
        return (
            f"no difference shown under {under}: {candidate} serves {how.estimate:.2f}× "
            f"[{how.low:.2f} to {how.high:.2f}] the rate of {base}"
        )
    if ranges[0].met_up_to and ranges[1].met_up_to:
        return f"no difference shown under {under}: both meet it at every rate measured; measure higher ones"
    if ranges[0].missed_from and ranges[1].missed_from:
        return f"no difference shown under {under}: neither meets it at any rate measured; measure lower ones"
    return f"not known under {under}: {base} {ranges[0]}; {candidate} {ranges[1]}"
