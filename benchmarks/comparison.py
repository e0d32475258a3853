"""Two deployments held against each other: the rate each serves under each SLO, and what that difference is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from benchmarks.boundary import Boundary
from benchmarks.explore import Measured, conclude
from benchmarks.ratio import Ratio, ratio
from benchmarks.slo import Slo


class Range(BaseModel):
    """The highest rate under an SLO, requests per second: estimate, highest shown to pass, lowest shown to fail.

    `all_pass` (or `all_fail`): every rate that was measured did, the highest (lowest) of which is `end`.
    """

    confidence: float
    rate: float | None
    passes: float | None
    fails: float | None
    all_pass: bool = False
    all_fail: bool = False
    end: float | None = None

    def __str__(self) -> str:
        if self.rate is None:
            side = "met" if self.all_pass else "missed"
            return f"{side} at every rate measured ({'up to' if self.all_pass else 'down to'} {self.end:.3g} req/s)"
        ends = [f"{end:.3g}" if end is not None else "?" for end in (self.passes, self.fails)]
        return f"{self.rate:.3g} [{ends[0]} to {ends[1]}] req/s"


class SloComparison(BaseModel):
    """One SLO: its bounds in words, both sides, candidate over base, and what that says in a sentence."""

    name: str
    bounds: list[str]
    base: Range
    candidate: Range
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
        ours = [conclude(bounds, runs, "").rate for _, runs in (base, candidate)]
        ranges = [_range(one, bounds, runs) for one, (_, runs) in zip(ours, (base, candidate), strict=True)]
        how = ratio(*ours)
        words = [str(bound) for bound in bounds]
        sentence = _sentence(words, base[0], candidate[0], ranges, how)
        found.append(
            SloComparison(name=name, bounds=words, base=ranges[0], candidate=ranges[1], ratio=how, sentence=sentence)
        )
    return found


def _range(found: Boundary, bounds: Sequence[Slo], runs: Sequence[Measured]) -> Range:
    from benchmarks.explore import answers_of

    answers = [answers_of(bound, runs) for bound in bounds]
    met = [all(each[index].passes for each in answers) for index in range(len(runs))]
    rates = [run.rate for run in runs]
    return Range(
        confidence=found.confidence,
        rate=found.rate,
        passes=found.passes,
        fails=found.fails,
        all_pass=all(met),
        all_fail=not any(met),
        end=max(rates) if all(met) else min(rates) if not any(met) else None,
    )


def _sentence(words: Sequence[str], base: str, candidate: str, ranges: Sequence[Range], how: Ratio) -> str:
    under = " and ".join(words)
    if how.verdict in ("more", "less"):
        return (
            f"{candidate} serves {how.estimate:.2f}× [{how.low:.2f} to {how.high:.2f}] the rate of {base} under {under}"
        )
    if how.verdict == "no difference shown":
        return (
            f"no difference shown under {under}: {candidate} serves {how.estimate:.2f}× "
            f"[{how.low:.2f} to {how.high:.2f}] the rate of {base}"
        )
    if ranges[0].all_pass and ranges[1].all_pass:
        return f"no difference shown under {under}: both meet it at every rate measured; measure higher ones"
    if ranges[0].all_fail and ranges[1].all_fail:
        return f"no difference shown under {under}: neither meets it at any rate measured; measure lower ones"
    return f"not known under {under}: {base} {ranges[0]}; {candidate} {ranges[1]}"
