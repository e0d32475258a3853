"""How long requests were inside engines, as the engines say: what a client sees beyond that is delivery."""

from __future__ import annotations

import math

from benchmarks.metrics import Counters, Labels

_BUCKETS = "ray_vllm_e2e_request_latency_seconds_bucket"


def engine_seconds(delta: Counters, requests: int) -> float | None:
    """Mean seconds that one of `requests` spent in engines, at most; None where the engines do not say.

    Every observation of vLLM's histogram counts as its bucket's upper edge, because Ray keeps the counts of buckets and
    not their sum. A request of a prefill/decode deployment is in two engines, one after the other: both count.
    None too when an observation is beyond the last edge.
    """
    by_engine: dict[Labels, dict[float, float]] = {}
    for labels, count in delta.by_labels(_BUCKETS).items():
        named = dict(labels)
        edge = float(named.pop("le"))
        by_engine.setdefault(frozenset(named.items()), {})[edge] = count
    if not by_engine or not requests:
        return None
    seconds = 0.0
    for counts in by_engine.values():
        below = 0.0
        for edge, count in sorted(counts.items()):
            if count > below and math.isinf(edge):
                return None
            seconds += (count - below) * edge if count > below else 0.0
            below = max(below, count)
    return seconds / requests if seconds else None
