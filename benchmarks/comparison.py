"""Two deployments held against each other: what differs, how sure that is, and what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel

from benchmarks.compared_side import ComparedSide
from benchmarks.errors import BenchmarkError
from benchmarks.latency_comparison import LatencyAt, LatencyOf, compare_latencies, in_words, latencies_of
from benchmarks.prices import Price
from benchmarks.slo_comparison import SloComparison, compare_slos
from benchmarks.target import Deployment
from benchmarks.validity import Finding, Pair, accepted_faults, check_comparison, refusals
from benchmarks.worth import Worth, worth


class Refused(BenchmarkError):
    """The numbers must not be compared; the message says why, a line for each reason."""


class Compared(BaseModel):
    """One side: its runs, the rates that they measured (requests per second) and the latencies there, and what they ran
    on.
    """

    name: str
    runs: list[str]
    rates: list[float]
    latencies: list[LatencyOf]
    model: str
    deployment: Deployment
    output_tokens: float


class Comparison(BaseModel):
    """comparison.json. `sentence` is the answer to the scenario's own SLO; `slos` has that of each set.

    latencies are in milliseconds at those offered rates, in requests per second, that both sides measured;
    `latency_sentences` say the same in words.
    worth: what the difference is worth, for each SLO whose rates are known on GPUs. findings: of the comparison. notes:
    what is to be said with the runs' own numbers, each kind once a side. accepted: faults that were told to be used all
    the same. left_out: runs of the stacks that were not taken.
    """

    schema_version: Literal[2] = 2
    sentence: str
    base: Compared
    candidate: Compared
    scenario: str
    slos: list[SloComparison]
    latencies: list[LatencyAt]
    latency_sentences: list[str]
    worth: list[Worth]
    findings: list[Finding]
    notes: list[Finding]
    accepted: list[Finding]
    left_out: list[str]


def compare(
    base: ComparedSide,
    candidate: ComparedSide,
    accept: Sequence[str] = (),
    price: Price | None = None,
    load: float | None = None,
) -> Comparison:
    """Compare two sides. `accept`: ids of faults to use the numbers in spite of; `load`: requests per second to reckon
    nodes for, None for what the candidate serves. Raises Refused.
    """
    if same := {run.path.resolve() for run in base.runs} & {run.path.resolve() for run in candidate.runs}:
        raise Refused(f"{min(same).name} stands on both sides; a run cannot be compared with itself")
    base, candidate = told_apart(base, candidate)
    of_pair = check_comparison(Pair(base.seen, candidate.seen))
    findings = [*base.findings(), *candidate.findings(), *of_pair]
    if reasons := refusals(findings, accept):
        raise Refused("these runs must not be compared:\n  " + "\n  ".join(reasons))
    slos = compare_slos(
        base.runs[-1].scenario.slo_sets, (base.name, base.measured), (candidate.name, candidate.measured)
    )
    latencies = compare_latencies(base.results, candidate.results)
    return Comparison(
        sentence=slos[0].sentence,
        base=_compared(base),
        candidate=_compared(candidate),
        scenario=base.runs[-1].scenario.name,
        slos=slos,
        latencies=latencies,
        latency_sentences=in_words(latencies, base.name, candidate.name),
        worth=[found for slo in slos if (found := worth(slo, base, candidate, price, load)) is not None],
        findings=of_pair,
        notes=[*base.notes(), *candidate.notes()],
        accepted=accepted_faults(findings, accept),
        left_out=[*base.left_out, *candidate.left_out],
    )


def told_apart(base: ComparedSide, candidate: ComparedSide) -> tuple[ComparedSide, ComparedSide]:
    """Two sides of one stack under names of their own: the stack's, and the latest run's."""
    if base.name != candidate.name:
        return base, candidate
    first, second = (replace(side, name=f"{side.name} {side.runs[-1].path.name}") for side in (base, candidate))
    return first, second


def _compared(side: ComparedSide) -> Compared:
    latest = side.runs[-1].target
    return Compared(
        name=side.name,
        runs=[f"{run.target.stack}/{run.path.name}" for run in side.runs],
        rates=sorted({run.rate for run in side.measured}),
        latencies=latencies_of(side.results),
        model=latest.model,
        deployment=latest.deployment,
        output_tokens=side.output_tokens,
    )
