"""The prefix hit rate that the service's counters show."""

from __future__ import annotations

from typing import Literal

from benchmarks.metrics import Counters
from benchmarks.prompt_tokens import CACHED_TOKENS, EXTERNAL_HITS, PROMPT_TOKENS


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
