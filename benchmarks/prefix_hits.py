"""The prefix hit rate: what a workload can have with some number of caches, and what the service's counters show."""

from __future__ import annotations

from typing import Literal

import numpy as np

from benchmarks.metrics import Counters
from benchmarks.prompt_tokens import CACHED_TOKENS, EXTERNAL_HITS, PROMPT_TOKENS
from benchmarks.workload import SentBefore, Workload, hit_tokens


def measured_hit_rate(delta: Counters, kind: Literal["pd", "aggregated"]) -> float | None:
    """Share of the prompt tokens that were in the prefix cache of the engines that compute prompts.

    delta: increase of the counters over a rate, warm-up included. The engines are those of prefill in a PD deployment,
    where decode engines are those that received KV, and all of them in an aggregated one. None when none shows a token.

    Not from vLLM's prefix_cache_hits over prefix_cache_queries: a prompt that waits for memory is looked up again in
    every step and counted each time (0.18: v1/core/sched/scheduler.py calls get_computed_blocks, which records, before
    allocate_slots may refuse). prompt_tokens and prompt_tokens_cached are counted once, with the first token. Ray shows
    a counter only after its first increment, so no cached tokens is none, and not unknown.
    """
    tokens, cached = delta.by_labels(PROMPT_TOKENS), delta.by_labels(CACHED_TOKENS)
    decode = {engine for engine, received in delta.by_labels(EXTERNAL_HITS).items() if received > 0}
    if kind == "pd" and not decode:
        return None
    computing = [engine for engine in tokens if engine not in decode]
    total = sum(tokens[engine] for engine in computing)
    return sum(cached.get(engine, 0.0) for engine in computing) / total if total > 0 else None


def expected_hit_rate(workload: Workload, block_size: int, caches: int) -> float:
    """The hit rate of a workload whose requests go to one of `caches` caches each, at random; caches lose nothing.

    block_size: tokens of the caches' blocks. With one cache it is what was built. A prefix that all requests share is
    soon in every cache; a turn of a conversation meets the one before it in the same one of n once in n times, unless a
    router brings them together. A service with enough memory shows a rate between this one and that of one cache.
    """
    chooser = np.random.default_rng(0)
    sent = [SentBefore(workload.block_size) for _ in range(caches)]
    found = sum(
        hit_tokens(sent[int(chooser.integers(caches))].add(planned), planned.isl, block_size)
        for planned in workload.requests
    )
    return found / max(1, sum(planned.isl for planned in workload.requests))
