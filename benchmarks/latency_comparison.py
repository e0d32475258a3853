"""Which of two sides has the lower latency at which rate, where both were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from pydantic import BaseModel

from benchmarks.run_directory import RateResult
from benchmarks.slo import Metric, Statistic

METRICS: tuple[Metric, ...] = ("ttft", "tpot", "e2e")
STATISTIC: Statistic = "p90"
# Rates closer than this, as a part of the lower, count as one.
APART = 0.05
Lower = Literal["base", "candidate", "no difference shown"]


class Value(BaseModel):
    """A latency in milliseconds and the interval it is in."""

    value: float
    low: float
    high: float


class LatencyAt(BaseModel):
    """Both sides at one offered rate, in requests per second. lower: whose interval lies below the other's."""

    rate: float
    metric: Metric
    statistic: Statistic
    base: Value
    candidate: Value
    lower: Lower


def compare_latencies(base: Sequence[RateResult], candidate: Sequence[RateResult]) -> list[LatencyAt]:
    """p90 of TTFT, TPOT and E2E at the rates that both sides' measurements span, overloaded ones left out.

    Runs at one rate are one value: their mean, in an interval that holds those of all. Between two rates of a side its
    latency is interpolated, both in logarithms.
    """
    found: list[LatencyAt] = []
    for metric in METRICS:
        ours, theirs = _curve(base, metric), _curve(candidate, metric)
        for rate in _common(list(ours), list(theirs)):
            a, b = _at(ours, rate), _at(theirs, rate)
            lower: Lower = "base" if a.high < b.low else "candidate" if b.high < a.low else "no difference shown"
            found.append(LatencyAt(rate=rate, metric=metric, statistic=STATISTIC, base=a, candidate=b, lower=lower))
    return found


def in_words(compared: Sequence[LatencyAt], base: str, candidate: str) -> list[str]:
    """A sentence for each metric and each stretch of rates over which the same side is lower."""
    sentences: list[str] = []
    names = {"base": base, "candidate": candidate}
    for (metric, lower), group in groupby(compared, key=lambda item: (item.metric, item.lower)):
        rates = [item.rate for item in group]
        where = f"at {rates[0]:.3g} req/s" if len(rates) == 1 else f"from {rates[0]:.3g} to {rates[-1]:.3g} req/s"
        what = f"{metric.upper()} {STATISTIC}"
        if lower in names:
            sentences.append(f"{names[lower]} has the lower {what} {where}")
        else:
            sentences.append(f"no difference shown in {what} {where}")
    return sentences


def _curve(results: Sequence[RateResult], metric: Metric) -> dict[float, Value]:
    """rate -> latency, lowest rate first."""
    known: dict[float, list[tuple[float, float, float]]] = {}
    for result in sorted(results, key=lambda item: item.rate):
        latency = result.summary.latency(metric)
        value, interval = latency.get(STATISTIC), latency.intervals.get(STATISTIC)
        if value is None or interval is None or result.overloaded:
            continue
        near = next((rate for rate in known if result.rate <= rate * (1 + APART)), result.rate)
        known.setdefault(near, []).append((value, *interval))
    return {
        rate: Value(
            value=sum(value for value, _, _ in runs) / len(runs),
            low=min(low for _, low, _ in runs),
            high=max(high for _, _, high in runs),
        )
        for rate, runs in known.items()
    }


def _common(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """The rates of either side within what both span."""
    if not ours or not theirs:
        return []
    low, high = max(ours[0], theirs[0]), min(ours[-1], theirs[-1])
    rates: list[float] = []
    for rate in sorted({*ours, *theirs}):
        if low <= rate <= high and (not rates or rate > rates[-1] * (1 + APART)):
            rates.append(rate)
    return rates


def _at(curve: dict[float, Value], rate: float) -> Value:
    if rate in curve:
        return curve[rate]
    below, above = max(r for r in curve if r < rate), min(r for r in curve if r > rate)
    part = math.log(rate / below) / math.log(above / below)

    def between(low: float, high: float) -> float:
        return math.exp((1 - part) * math.log(low) + part * math.log(high))

    a, b = curve[below], curve[above]
    return Value(value=between(a.value, b.value), low=between(a.low, b.low), high=between(a.high, b.high))
