"""What a replica counts, as vLLM and this repository's callback do in a real one (serving/replica/kv_counters.py)."""

from __future__ import annotations

from dataclasses import dataclass

# Memory descriptors of one block: K and V of two layers. The model has no layers; the real tiny one has four.
DESCRIPTORS_PER_BLOCK = 4


@dataclass
class Counted:
    """Of one replica since it began. Tokens, requests, bytes; seconds are the model's.

    prompt_tokens and cached_tokens when a prompt is complete, and what was neither computed here; prefix_*: tokens that
    the replica's own cache was asked for and had; external_*: the same of other replicas. requests: answered ones.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    external_queries: int = 0
    external_hits: int = 0
    generation_tokens: int = 0
    requests: int = 0
    kv_transfers: int = 0
    kv_bytes: int = 0
    kv_descriptors: int = 0
    kv_post_seconds: float = 0.0
    kv_transfer_seconds: float = 0.0
    failed_transfers: int = 0
    expired: int = 0

    def prompt(self, tokens: int, cached: int) -> None:
        """A prompt is complete, `cached` tokens of it without being computed here."""
        self.prompt_tokens += tokens
        self.cached_tokens += cached

    def looked_up(self, tokens: int, hit: int) -> None:
        """The replica's own prefix cache was asked."""
        self.prefix_queries += tokens
        self.prefix_hits += hit

    def received(self, blocks: int, size: int, post: float, seconds: float) -> None:
        """KV of `blocks` blocks, `size` bytes together, was read from a prefill replica; it took `seconds`."""
        self.kv_transfers += 1
        self.kv_bytes += size
        self.kv_descriptors += blocks * DESCRIPTORS_PER_BLOCK
        self.kv_post_seconds += post
        self.kv_transfer_seconds += seconds
