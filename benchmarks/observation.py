"""What the requests of one run say about each bound of an SLO."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.boundary import FURTHEST, Run
from benchmarks.records import Request
from benchmarks.slo import Slo

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def observe(slo: Slo, measured: Sequence[Request], offered: float) -> Run:
    """One run's answer to one bound. `measured` are the requests of its window, two at least, in the order of sending.

    A request that failed, or whose answer is not complete, took for ever: a percentile notices it where there are
    enough of them, a mean with a single one. Answers that were asked to be one token long have no time between tokens,
    and say nothing about a bound on it.
    """
    achieved = (len(measured) - 1) / max(measured[-1].sent_s - measured[0].sent_s, 1e-9)
    asked = [request for request in measured if slo.metric not in ("tpot", "itl") or request.asked > 1]
    complete = [np.asarray(values) for request in asked if (values := _latencies(slo, request)) is not None]
    if not complete:
        return Run(offered, achieved, FURTHEST)
    found = np.concatenate(complete)
    if slo.statistic == "mean":
        value = float(found.mean()) if len(complete) == len(asked) else math.inf
    else:
        failed = (len(asked) - len(complete)) * round(found.size / len(complete))
        value = float(np.quantile(np.append(found, np.full(failed, np.inf)), QUANTILES[slo.statistic], method="higher"))
    excess = math.log(max(value, 1e-9) / slo.bound_ms) if math.isfinite(value) else FURTHEST
    return Run(offered, achieved, min(max(excess, -FURTHEST), FURTHEST))


def _latencies(slo: Slo, request: Request) -> Sequence[float] | None:
    """What `slo` bounds, in milliseconds, of a complete answer: one value, or all gaps between its tokens."""
    if request.fault() is not None:
        return None
    if slo.metric == "itl":
        return request.gaps_ms or None
    value = {"ttft": request.ttft_ms, "tpot": request.tpot_ms, "e2e": request.e2e_ms}[slo.metric]
    return None if value is None else (value,)
