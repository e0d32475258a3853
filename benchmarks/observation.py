"""What the requests of one run say about each bound of an SLO."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.boundary import Run
from benchmarks.records import Request
from benchmarks.slo import Slo

# The share of requests that may exceed a bound on a percentile.
SHARES = {"p50": 0.5, "p90": 0.1, "p99": 0.01}
MEAN = 1.0


def observe(slo: Slo, measured: Sequence[Request], offered: float) -> Run:
    """One run's answer to one bound. `measured` are the requests of its window, two at least, in the order of sending.

    A request that failed, or whose answer is not complete, exceeds every bound on a percentile. A bound on a mean is
    over complete answers, as no number stands for the others; without any it is failed by far.
    """
    achieved = (len(measured) - 1) / max(measured[-1].sent_s - measured[0].sent_s, 1e-9)
    complete = [values for request in measured if (values := _latencies(slo, request)) is not None]
    if slo.statistic != "mean":
        within = sum(float(np.mean(np.array(values) <= slo.bound_ms)) for values in complete)
        return Run(offered, achieved, 1 - within / len(measured), SHARES[slo.statistic], float(len(measured)))
    if len(complete) < 2:
        return Run(offered, achieved, 10 * MEAN, MEAN, 1.0)
    means = [float(np.mean(values)) for values in complete]
    mean, scatter = float(np.mean(means)), float(np.std(means, ddof=1))
    relative = max(scatter / mean, 1e-3)
    return Run(offered, achieved, mean / slo.bound_ms, MEAN, len(means) / relative**2)


def _latencies(slo: Slo, request: Request) -> Sequence[float] | None:
    """What `slo` bounds, in milliseconds, of a complete answer: one value, or all gaps between its tokens."""
    if request.fault() is not None:
        return None
    if slo.metric == "itl":
        return request.gaps_ms or None
    value = {"ttft": request.ttft_ms, "tpot": request.tpot_ms, "e2e": request.e2e_ms}[slo.metric]
    return None if value is None else (value,)
