"""The rate that each of two deployments serves under each SLO, held against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from benchmarks.highest_rate import HighestRate, highest_rate
from benchmarks.joint_search import conclude
from benchmarks.measured import Measured
from benchmarks.ratio import Ratio, ratio
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
        how = _one_sided(*ranges) or ratio(*ours)
        words = [str(bound) for bound in bounds]
        sentence = _sentence(words, base[0], candidate[0], ranges, how)
        found.append(
            SloComparison(name=name, bounds=words, base=ranges[0], candidate=ranges[1], ratio=how, sentence=sentence)
        )
    return found


def _one_sided(base: HighestRate, candidate: HighestRate) -> Ratio | None:
    """How much more, at least, where one side has a boundary and the other met the SLO at a rate beyond it."""
    if base.fails is not None and candidate.met_up_to is not None and candidate.met_up_to > base.fails:
        return Ratio(verdict="more", low=candidate.met_up_to / base.fails)
    if candidate.fails is not None and base.met_up_to is not None and base.met_up_to > candidate.fails:
        return Ratio(verdict="less", high=candidate.fails / base.met_up_to)
    return None


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
