"""Numbers of one request rate, from the raw records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, Field

from benchmarks.bootstrap import interval_of_mean, interval_of_quantile
from benchmarks.records import Request
from benchmarks.scenario import Scenario
from benchmarks.slo import Metric, Slo, Statistic
from benchmarks.steady_state import find_settled

CONFIDENCE = 0.95
_QUANTILES: dict[Statistic, float] = {"p50": 0.50, "p90": 0.90, "p99": 0.99}


class Latency(BaseModel):
    """One latency in milliseconds over `count` samples. A percentile that so few samples cannot support is None.

    `intervals`: statistic -> (low, high) of its bootstrap interval (bootstrap.LEVEL). Not of ITL, whose samples are the
    chunks of one request after the other and no sample of their own; and not in runs from before there were intervals.
    """

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    intervals: dict[Statistic, tuple[float, float]] = Field(default_factory=dict)

    def get(self, statistic: Statistic) -> float | None:
        """One statistic by name."""
        return getattr(self, statistic)


class SloResult(BaseModel):
    """One SLO held against the measurement; met is None when the samples do not support an answer."""

    slo: Slo
    measured_ms: float | None
    met: bool | None


class RateSummary(BaseModel):
    """Results of one rate. Rates are requests per second, throughput output tokens per second, times seconds.

    offered: what the scenario asks for; achieved: what the client sent in the window; served: complete answers that
    ended in the window. The window begins with the first measured request and ends with the last one sent.
    settled: whether the load had settled where the window begins, None where too few requests tell; settling says so.
    """

    offered: float
    achieved: float
    served: float
    output_tokens_per_s: float
    requests_sent: int
    warmup_requests: int
    measured: int
    good: int
    faults: dict[str, int]
    first_error: str | None
    window_s: float
    drain_s: float
    client_lag_p90_ms: float
    ttft: Latency
    tpot: Latency
    itl: Latency
    e2e: Latency
    slo: list[SloResult]
    settled: bool | None = None
    settling: str = ""

    @property
    def slo_met(self) -> bool | None:
        """True when every SLO is met, False when one is not, None when it cannot be told."""
        results = [result.met for result in self.slo]
        if False in results:
            return False
        return None if None in results else True

    def latency(self, metric: Metric) -> Latency:
        """One latency by name."""
        return getattr(self, metric)


def samples_needed(quantile: float) -> int:
    """Fewest samples whose largest lies above the true quantile with 95 % confidence: 1 − q^n ≥ 0.95.

    With fewer, the upper end of the (distribution-free, order-statistic) interval of the quantile does not exist.
    5 for p50, 29 for p90, 299 for p99.
    """
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(quantile))


def describe(values: Sequence[float]) -> Latency:
    """Mean and percentiles (linear interpolation) of values in milliseconds."""
    data = np.asarray(values, dtype=float)
    found = {
        name: float(np.quantile(data, q)) if data.size >= samples_needed(q) else None for name, q in _QUANTILES.items()
    }
    mean = float(data.mean()) if data.size else None
    return Latency(count=int(data.size), mean=mean, p50=found["p50"], p90=found["p90"], p99=found["p99"])


def describe_requests(values: Sequence[float]) -> Latency:
    """The same of one value a request, in the order of sending, and how sure each statistic is."""
    latency = describe(values)
    if latency.mean is not None:
        latency.intervals["mean"] = interval_of_mean(values)
    for name, quantile in _QUANTILES.items():
        if latency.get(name) is not None:
            latency.intervals[name] = interval_of_quantile(values, quantile)
    return latency


def summarize(scenario: Scenario, rate: float, requests: Sequence[Request], warmup: int | None = None) -> RateSummary:
    """Results of one rate. `requests` are all that were sent, in order of sending, warm-up first.

    warmup: how many of them were planned as warm-up; None: the least that the scenario asks for. The window begins
    after them, or later where the requests show that the load had not settled by then.

    Latencies are taken over complete answers only; every other answer is counted in `faults`.
    """
    settled = find_settled(requests, scenario.warmup_requests(rate) if warmup is None else warmup)
    measured = requests[settled.first :]
    good = [request for request in measured if request.fault() is None]
    faults = Counter(fault for request in measured if (fault := request.fault()) is not None)
    start, end = (measured[0].sent_s, measured[-1].sent_s) if measured else (0.0, 0.0)
    window = max(end - start, 1e-9)
    # Answers to warm-up requests that end in the window belong to what the service delivered in it.
    ended = [r for r in requests if start <= r.end_s <= end and r.fault() is None]
    latencies: dict[Metric, Latency] = {
        "ttft": describe_requests([r.ttft_ms for r in good if r.ttft_ms is not None]),
        "tpot": describe_requests([r.tpot_ms for r in good if r.tpot_ms is not None]),
        "itl": describe([gap for r in good for gap in r.gaps_ms]),
        "e2e": describe_requests([r.e2e_ms for r in good if r.e2e_ms is not None]),
    }
    return RateSummary(
        offered=rate,
        achieved=(len(measured) - 1) / window if measured else 0.0,
        served=len(ended) / window,
        output_tokens_per_s=sum(r.output_tokens or 0 for r in ended) / window,
        requests_sent=len(requests),
        warmup_requests=min(settled.first, len(requests)),
        measured=len(measured),
        good=len(good),
        faults=dict(faults),
        first_error=next((r.error for r in requests if r.error), None),
        window_s=window,
        drain_s=max((r.end_s for r in requests), default=end) - end,
        client_lag_p90_ms=float(np.quantile([(r.sent_s - r.due_s) * 1000 for r in measured], 0.9)) if measured else 0.0,
        **latencies,
        slo=[_judge(slo, latencies[slo.metric]) for slo in scenario.slo],
        settled=settled.settled,
        settling=settled.sentence,
    )


def _judge(slo: Slo, latency: Latency) -> SloResult:
    value = latency.get(slo.statistic)
    return SloResult(slo=slo, measured_ms=value, met=None if value is None else value <= slo.bound_ms)
