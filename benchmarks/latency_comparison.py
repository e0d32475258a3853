"""Which of two sides has the lower latency at the rates that both were measured at.

A single window says nothing of how much a repeated run would differ: of two windows of one and the same service at 90 %
of its capacity, the 90 % intervals miss each other in nearly half of the pairs. So a side is called lower only from two
runs a side on, by the scatter between them. Nothing is interpolated: near saturation latency is no line over the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from benchmarks.ratio import Ratio, ratio_of_runs
from benchmarks.run_directory import RateResult
from benchmarks.slo import Metric, Statistic

METRICS: tuple[Metric, ...] = ("ttft", "tpot", "e2e")
STATISTIC: Statistic = "p90"
# Rates closer than this, as a part of the lower, are one: a search that comes back to a rate measures it a thousandth
# higher (benchmarks/course.py), and rounds it to four digits.
APART = 0.0016
Lower = Literal["base", "candidate", "no difference shown", "no verdict"]


class Value(BaseModel):
    """A latency in milliseconds: mean over `runs`, and from low to high the 90 % intervals of all their windows."""

    value: float
    low: float
    high: float
    runs: int


class LatencyOf(BaseModel):
    """What one side was measured to have at one offered rate, in requests per second."""

    rate: float
    metric: Metric
    statistic: Statistic
    value: Value


class LatencyAt(BaseModel):
    """Both sides at one offered rate, in requests per second.

    ratio: candidate over base, from the scatter between runs. lower: the side whose latency is lower by it; why: what
    a verdict lacks, empty where there is one.
    """

    rate: float
    metric: Metric
    statistic: Statistic
    base: Value
    candidate: Value
    ratio: Ratio
    lower: Lower
    why: str = ""


def compare_latencies(base: Sequence[RateResult], candidate: Sequence[RateResult]) -> list[LatencyAt]:
    """p90 of TTFT, TPOT and E2E at the rates that both sides measured, those left out at which a run was overloaded."""
    return [
        _held(rate, metric, ours, theirs)
        for metric in METRICS
        for rate, ours, theirs in _common(_measured(base, metric), _measured(candidate, metric))
    ]


def latencies_of(results: Sequence[RateResult]) -> list[LatencyOf]:
    """p90 of TTFT, TPOT and E2E at each rate of one side, lowest first, without those at which a run was overloaded."""
    return [
        LatencyOf(rate=rate, metric=metric, statistic=STATISTIC, value=_value(runs))
        for metric in METRICS
        for rate, runs in _measured(results, metric).items()
    ]


def in_words(compared: Sequence[LatencyAt], base: str, candidate: str) -> list[str]:
    """A sentence for each metric and verdict, with the rates that it was found at, and for what lacks one, and why."""
    names = {"base": base, "candidate": candidate}
    found: dict[str, list[float]] = {}
    without: dict[tuple[str, tuple[float, ...]], list[str]] = {}
    lacking: dict[tuple[str, str], list[float]] = {}
    for item in compared:
        what = f"{item.metric.upper()} {item.statistic}"
        if item.lower == "no verdict":
            lacking.setdefault((what, item.why), []).append(item.rate)
        else:
            said = f"{names[item.lower]} has the lower {what}" if item.lower in names else f"{item.lower} in {what}"
            found.setdefault(said, []).append(item.rate)
    for (what, why), at in lacking.items():
        without.setdefault((why, tuple(at)), []).append(what)
    return [
        *(f"{said} at {_listed(at)} req/s" for said, at in found.items()),
        *(f"no verdict on {', '.join(what)} at {_listed(at)} req/s: {why}" for (why, at), what in without.items()),
    ]


def _held(rate: float, metric: Metric, ours: Sequence[_Window], theirs: Sequence[_Window]) -> LatencyAt:
    sides = [_value(ours), _value(theirs)]
    values = [[value for value, _, _ in runs] for runs in (ours, theirs)]
    why = _lacks(*values)
    how = Ratio(verdict="not known") if why else ratio_of_runs(*values)
    lower: Lower = "no verdict" if why else "no difference shown"
    if how.verdict in ("more", "less"):
        lower = "base" if how.verdict == "more" else "candidate"
    return LatencyAt(
        rate=rate,
        metric=metric,
        statistic=STATISTIC,
        base=sides[0],
        candidate=sides[1],
        ratio=how,
        lower=lower,
        why=why,
    )


def _lacks(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Why there is no verdict; empty where there is one."""
    fewest = min(len(ours), len(theirs))
    if fewest < 2:
        return "one run a side" if len(ours) == len(theirs) else "one run on a side"
    if min(*ours, *theirs) <= 0:
        return "a latency of 0 ms has no ratio to another"
    if len(set(ours)) == len(set(theirs)) == 1:
        return "the runs of each side are alike to the last digit, so they tell no scatter"
    return ""


_Window = tuple[float, float, float]  # value, and its interval's low and high, in milliseconds


def _measured(results: Sequence[RateResult], metric: Metric) -> dict[float, list[_Window]]:
    """rate -> each run's latency there, lowest rate first. A rate at which any run was overloaded is left out: those
    that happened to come through are not what the service does there.
    """
    known: dict[float, list[_Window]] = {}
    overloaded: set[float] = set()
    for result in sorted(results, key=lambda item: item.rate):
        near = next((rate for rate in known if result.rate <= rate * (1 + APART)), result.rate)
        runs = known.setdefault(near, [])
        latency = result.summary.latency(metric)
        value, interval = latency.get(STATISTIC), latency.intervals.get(STATISTIC)
        if result.overloaded:
            overloaded.add(near)
        elif value is not None and interval is not None:
            runs.append((value, *interval))
    return {rate: runs for rate, runs in known.items() if runs and rate not in overloaded}


def _common(
    ours: dict[float, list[_Window]], theirs: dict[float, list[_Window]]
) -> list[tuple[float, list[_Window], list[_Window]]]:
    """The rates that are on both sides."""
    return [
        (rate, runs, theirs[near])
        for rate, runs in ours.items()
        if (near := next((r for r in theirs if max(r, rate) <= min(r, rate) * (1 + APART)), None)) is not None
    ]


def _value(runs: Sequence[_Window]) -> Value:
    return Value(
        value=sum(value for value, _, _ in runs) / len(runs),
        low=min(low for _, low, _ in runs),
        high=max(high for _, _, high in runs),
        runs=len(runs),
    )


def _listed(rates: Sequence[float]) -> str:
    *first, last = [f"{rate:.3g}" for rate in rates]
    return f"{', '.join(first)} and {last}" if first else last
