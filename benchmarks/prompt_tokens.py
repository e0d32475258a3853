"""Which engine got the KV of how many prompt tokens from where.

`vllm:prompt_tokens_by_source` looks made for it and is useless through Ray on vLLM 0.18: labels() of its Ray wrapper
re-tags one shared counter, so every source is counted under the last label, external_kv_transfer
(v1/metrics/ray_wrappers.py:42-65, loggers.py:600-612). So the sources come from three counters without that label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from benchmarks.metrics import Counters, Labels

PROMPT_TOKENS = "ray_vllm_prompt_tokens_total"
CACHED_TOKENS = "ray_vllm_prompt_tokens_cached_total"
LOCAL_HITS = "ray_vllm_prefix_cache_hits_total"
EXTERNAL_HITS = "ray_vllm_external_prefix_cache_hits_total"
WATCHED = (PROMPT_TOKENS, CACHED_TOKENS, LOCAL_HITS, EXTERNAL_HITS)


class PromptTokens(BaseModel):
    """Prompt tokens of one rate by their source.

    received, cached, computed: those of decode, from prefill, from its own prefix cache, and computed by itself (None
    when no engine received any, as nothing tells decode from prefill then, and when an engine that did has no prompt
    tokens or more cached ones). computed_by_all: of every engine together. prefill: replica id
    to the prompt tokens it had. prefill_nodes: addresses of the nodes of those replicas.
    """

    received: int = 0
    cached: int = 0
    computed: int | None = None
    computed_by_all: int = 0
    prefill: dict[str, int] = {}
    prefill_nodes: list[str] = []


def prompt_tokens(delta: Counters) -> PromptTokens:
    """Sources in an increase of the counters. Decode engines are those that received any; prefill receives none."""
    prompt, cached = delta.by_labels(PROMPT_TOKENS), delta.by_labels(CACHED_TOKENS)
    received, local = delta.by_labels(EXTERNAL_HITS), delta.by_labels(LOCAL_HITS)
    everyone = round(sum(tokens - cached.get(engine, 0) for engine, tokens in prompt.items()))
    decode = [engine for engine, tokens in received.items() if tokens > 0]
    if not decode:
        return PromptTokens(computed_by_all=everyone)
    prefill = {engine: tokens for engine, tokens in prompt.items() if engine not in decode and tokens > 0}
    return PromptTokens(
        received=round(sum(received[engine] for engine in decode)),
        cached=round(sum(local.get(engine, 0) for engine in decode)),
        computed=_computed(decode, prompt, cached),
        computed_by_all=everyone,
        prefill={dict(engine).get("ReplicaId", "?"): round(tokens) for engine, tokens in prefill.items()},
        prefill_nodes=sorted({dict(engine).get("NodeAddress", "") for engine in prefill}),
    )


def _computed(decode: Sequence[Labels], prompt: Mapping[Labels, float], cached: Mapping[Labels, float]) -> int | None:
    """What decode computed itself. An engine that received KV has had prompt tokens: a series of them that is not there
    is lost, and 0 in its place would be the best of all answers. Ray exports a counter from its first increment other
    than 0 on, so an engine without cached tokens has computed them all."""
    each = [prompt[engine] - cached.get(engine, 0) for engine in decode if engine in prompt]
    return round(sum(each)) if len(each) == len(decode) and min(each) >= 0 else None
