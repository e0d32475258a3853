"""Why a KV proof fails: each way in which KV does not move as it should has a name, a sentence and its own finding.

A function returns None where its cause is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from benchmarks.prompt_tokens import CACHED_TOKENS, PROMPT_TOKENS, PromptTokens
from serving.kv_bytes import kv_bytes_moved

# What a vLLM engine may have: powers of two; 1 with MLA under AITER (serving/platforms.py).
_BLOCK_SIZES = tuple(2**power for power in range(11))


class Cause(BaseModel):
    """`id` is the finding's, `name` a few words, `sentence` the numbers and what they mean."""

    id: str
    name: str
    sentence: str


def uncounted(requests: int, known: int) -> Cause | None:
    """Answers without a token count: what their KV should be is not known."""
    if known == requests:
        return None
    sentence = f"{requests - known} of {requests} answers carry no token count: their KV bytes are unknown"
    return Cause(id="kv-uncounted", name="answers without a token count", sentence=sentence)


def unreadable(names: Sequence[str]) -> Cause:
    """Counters that are no numbers: nothing can be held against anything."""
    sentence = f"{', '.join(names)}: NaN or infinite, so nothing that the service counted can be trusted"
    return Cause(id="kv-unreadable", name="counters that are no numbers", sentence=sentence)


def missing() -> Cause:
    """No KV moved at all."""
    sentence = "the service reports no KV transfer at all: this is not prefill/decode disaggregation"
    return Cause(id="kv-missing", name="no KV moved", sentence=sentence)


def expired(by_replica: Mapping[str, int]) -> Cause | None:
    """Prefill gave KV blocks away before decode had said that it has them; counted on prefill, by replica id."""
    at = {replica: count for replica, count in by_replica.items() if count > 0}
    if not at:
        return None
    sentence = (
        f"expired KV blocks of {sum(at.values())} requests on prefill {', '.join(sorted(at))}: the lease ended before "
        "decode had reported the read, so decode may have read another prompt's KV, or the request was given up; "
        "bytes and answers look right all the same"
    )
    return Cause(id="kv-expired", name="expired leases", sentence=sentence)


def failed_transfers(count: int) -> Cause | None:
    """Reads that NIXL reported as failed or that could not be posted."""
    if count <= 0:
        return None
    sentence = f"{count} failed transfers: decode got no KV for them, and computed the prompt or failed the request"
    return Cause(id="kv-failed-transfers", name="failed transfers", sentence=sentence)


def failed_notifications(count: int) -> Cause | None:
    """Prefill was not told that its blocks are no longer needed."""
    if count <= 0:
        return None
    sentence = f"{count} failed notifications: prefill keeps those KV blocks until their lease ends"
    return Cause(id="kv-unnotified", name="failed notifications", sentence=sentence)


def recomputed(tokens: PromptTokens, requests: int, prompt_tokens: int) -> Cause | None:
    """Decode computed prompts itself. The last token of each is due (vLLM 0.18 v1/metrics/stats.py:277-280)."""
    if tokens.computed is not None and tokens.computed > requests:
        sentence = f"decode computed {tokens.computed:,} prompt tokens itself; at most 1 per request is due"
    elif not tokens.received and tokens.computed_by_all > prompt_tokens + requests:
        # Prefill computes every prompt once: what is more was computed by decode.
        sentence = (
            f"no engine reports prompt tokens received from another one, and together they computed "
            f"{tokens.computed_by_all:,} for {prompt_tokens:,} sent, so decode computed prompts again"
        )
    else:
        return None
    return Cause(id="kv-recomputed", name="recomputed by decode", sentence=sentence)


def computed_unknown(tokens: PromptTokens) -> Cause | None:
    """Decode received KV, and does not say what it computed beside it: nothing shows that it used what it received."""
    if not tokens.received or tokens.computed is not None:
        return None
    sentence = (
        "how many prompt tokens decode computed itself is not known: an engine that received KV exports no "
        f"{PROMPT_TOKENS}, or more {CACHED_TOKENS}"
    )
    return Cause(id="kv-computed-unknown", name="decode's own tokens unknown", sentence=sentence)


def unreceived(tokens: PromptTokens, counted_transfers: int | None) -> Cause | None:
    """KV was read, and yet no engine says that any of its prompt tokens came from outside."""
    if tokens.received or not counted_transfers:
        return None
    sentence = f"no engine reports prompt tokens received from another one, after {counted_transfers} KV transfers"
    return Cause(id="kv-unreceived", name="nothing received", sentence=sentence)


def foreign(requests: int | None) -> Cause | None:
    """KV of requests that are not ours."""
    if not requests:
        return None
    sentence = f"foreign traffic: the service moved KV for {requests} more requests than this run sent"
    return Cause(id="foreign-traffic", name="foreign traffic", sentence=sentence)


def wrong_count(counted: int, expected: int) -> Cause | None:
    """Not one transfer for each request and rank, and not more either."""
    if counted >= expected:
        return None
    sentence = f"{counted} KV transfers for {expected} expected"
    return Cause(id="kv-transfers", name="transfers missing", sentence=sentence)


def wrong_bytes(counted: int, expected: int) -> Cause | None:
    """Not the bytes that the prompts need, for no reason that is known."""
    if counted == expected:
        return None
    sentence = f"{counted:,} KV bytes moved, {expected:,} expected"
    return Cause(id="kv-bytes", name="wrong number of bytes", sentence=sentence)


def configured_block_sizes(decode: int, prefill: int | None) -> Cause | None:
    """Prefill is told to have other blocks than decode: which bytes are due is then not known."""
    if prefill is None or prefill == decode:
        return None
    sentence = (
        f"prefill has blocks of {prefill} tokens and decode of {decode}, as configured: no byte count proves that"
    )
    return Cause(id="kv-block-size", name="unequal block sizes", sentence=sentence)


def unequal_block_sizes(
    counted: int, lengths: Sequence[int], block_size: int, bytes_per_token: int, cached: int
) -> Cause | None:
    """The bytes are not those of decode's block size, and are, to the byte, those of another one.

    vLLM 0.18 reads prefill's blocks, as many as prefill has, into decode's larger ones (nixl_connector.py:2513-2553).
    `lengths` are the prompts' tokens, `cached` the tokens that decode's prefix cache held. Prompts whose length is a
    multiple of both sizes cannot show it: their bytes are the same.
    """

    def moved(size: int) -> int:
        return sum(kv_bytes_moved(tokens, size, bytes_per_token) for tokens in lengths) - cached * bytes_per_token

    if counted == moved(block_size):
        return None
    fitting = [str(size) for size in _BLOCK_SIZES if moved(size) == counted]
    if not fitting:
        return None
    sentence = (
        f"{counted:,} KV bytes moved, {moved(block_size):,} expected for decode's blocks of {block_size} tokens: "
        f"exactly what blocks of {' or '.join(fitting)} tokens need, so prefill's blocks are not decode's, or NIXL "
        "moved the attention kernel's"
    )
    return Cause(id="kv-block-size", name="unequal block sizes", sentence=sentence)
