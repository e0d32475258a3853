"""How much of the prompts the engines that computed them found in their own prefix caches."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.metrics import Counters
from benchmarks.prompt_tokens import EXTERNAL_HITS, LOCAL_HITS, PROMPT_TOKENS


@dataclass(frozen=True)
class PrefixHits:
    """Prompt tokens that engines were given to compute, those of them that were in their caches, and the engines."""

    tokens: int
    hits: int
    engines: int

    @property
    def rate(self) -> float:
        """Share of the prompt tokens that were cached, 0 to 1."""
        return self.hits / self.tokens


def prefix_hits(delta: Counters) -> PrefixHits | None:
    """Hits in an increase of the counters; None where no engine reports prompt tokens.

    Decode engines of a prefill/decode deployment, which are those that received KV, do not count: they get every prompt
    from prefill. Ray shows a counter only after its first increment, so no hit is no series.
    """
    decode = {engine for engine, tokens in delta.by_labels(EXTERNAL_HITS).items() if tokens > 0}
    prompts = {
        engine: tokens
        for engine, tokens in delta.by_labels(PROMPT_TOKENS).items()
        if engine not in decode and tokens > 0
    }
    if not prompts:
        return None
    local = delta.by_labels(LOCAL_HITS)
    hits = sum(local.get(engine, 0.0) for engine in prompts)
    return PrefixHits(tokens=round(sum(prompts.values())), hits=round(hits), engines=len(prompts))
