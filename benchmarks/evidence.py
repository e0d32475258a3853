"""The KV proof: did every prompt's KV cache move from prefill to decode, byte for byte?

The numbers come from counters that this repository's engine callback keeps on decode (`pd_kv_*`, exported by Ray as
`ray_pd_kv_*_total`), because Ray rebuilds the `_sum` of vLLM's own histogram from bucket midpoints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from benchmarks.metrics import Counters
from benchmarks.records import Request
from benchmarks.replicas import replica_changes
from benchmarks.target import Target
from serving.kv_bytes import kv_bytes_moved

BYTES = "ray_pd_kv_bytes_transferred_total"
TRANSFERS = "ray_pd_kv_transfers_total"
# vLLM's NIXL counters (0.18 nixl_connector.py:3004-3073); Ray shows a counter only after its first increment.
FAILURES = {
    "failed transfers": "ray_vllm_nixl_num_failed_transfers_total",
    "failed notifications": "ray_vllm_nixl_num_failed_notifications_total",
    "expired KV blocks": "ray_vllm_nixl_num_kv_expired_reqs_total",
}
# Per engine. Not `prompt_tokens_by_source`: labels() of vLLM 0.18's Ray wrapper re-tags one shared counter, so every
# source is counted under the last label, external_kv_transfer (v1/metrics/ray_wrappers.py:42-65, loggers.py:600-612).
PROMPT_TOKENS = "ray_vllm_prompt_tokens_total"
CACHED_TOKENS = "ray_vllm_prompt_tokens_cached_total"
LOCAL_HITS = "ray_vllm_prefix_cache_hits_total"
EXTERNAL_HITS = "ray_vllm_external_prefix_cache_hits_total"
ANSWERED = "ray_vllm_request_success_total"

WATCHED = (BYTES, TRANSFERS, *FAILURES.values(), PROMPT_TOKENS, CACHED_TOKENS, LOCAL_HITS, EXTERNAL_HITS, ANSWERED)


class KvProof(BaseModel):
    """Verdict and numbers. Bytes are bytes, tokens are tokens; None means that the service does not report it.

    `decode_computed_tokens` are prompt tokens that decode computed itself instead of receiving their KV.
    `replica_changes` says, a sentence each, that the replicas were not the same all the time.
    """

    verdict: Literal["proven", "failed", "not applicable"]
    reasons: list[str]
    requests: int
    prompt_tokens: int | None = None
    expected_bytes: int | None = None
    counted_bytes: int | None = None
    expected_transfers: int | None = None
    counted_transfers: int | None = None
    failures: dict[str, int] = {}
    decode_computed_tokens: int | None = None
    decode_cached_tokens: int = 0
    foreign_requests: int | None = None
    replica_changes: list[str] = []


def all_counted(target: Target, requests: Sequence[Request], delta: Counters) -> bool:
    """True when the counters account for every request.

    Somebody else's requests may stand in for ours that a replica has not exported yet, so this alone is no reason to
    stop waiting.
    """
    if target.deployment.kind == "pd":
        return prove_kv(target, requests, delta).verdict == "proven"
    return (delta.total(ANSWERED) or 0) >= len(requests)


def prove_kv(target: Target, requests: Sequence[Request], delta: Counters) -> KvProof:
    """Hold the service's counters against the requests.

    `delta` is the increase of the counters over an interval in which exactly `requests` (warm-up included) were sent
    and answered.
    """
    if target.deployment.kind != "pd" or target.kv is None:
        return _foreign_only(target, requests, delta)
    reasons: list[str] = []
    known = [request.prompt_tokens for request in requests if request.prompt_tokens is not None]
    if len(known) < len(requests):
        reasons.append(
            f"{len(requests) - len(known)} of {len(requests)} answers carry no token count: their KV bytes are unknown"
        )
    cached, computed = _decode_prompt_tokens(delta)
    whole = sum(kv_bytes_moved(tokens, target.kv.block_size, target.kv.bytes_per_token) for tokens in known)
    proof = KvProof(
        verdict="failed",
        reasons=[],
        requests=len(requests),
        prompt_tokens=sum(known),
        # vLLM pulls only the blocks that decode's own prefix cache lacks (0.18 nixl_connector.py:720-751).
        expected_bytes=whole - cached * target.kv.bytes_per_token,
        counted_bytes=_whole(delta.total(BYTES)),
        expected_transfers=len(requests) * target.deployment.transfers_per_request,
        counted_transfers=_whole(delta.total(TRANSFERS)),
        failures={label: round(delta.total(name) or 0) for label, name in FAILURES.items()},
        decode_computed_tokens=computed,
        decode_cached_tokens=cached,
        replica_changes=replica_changes(delta.only(WATCHED), target.deployment.replicas),
    )
    proof.foreign_requests = _foreign(proof, target.deployment.transfers_per_request)
    proof.reasons = [*reasons, *_complaints(proof)]
    proof.verdict = "failed" if proof.reasons else "proven"
    return proof


def _complaints(proof: KvProof) -> list[str]:
    reasons = [f"{count} {label}" for label, count in proof.failures.items() if count]
    reasons += proof.replica_changes
    if proof.counted_bytes is None or proof.counted_transfers is None:
        reasons.append("the service reports no KV transfer at all: this is not prefill/decode disaggregation")
        return reasons
    if proof.foreign_requests:
        reasons.append(
            f"foreign traffic: the service moved KV for {proof.foreign_requests} more requests than this run sent"
        )
    elif proof.counted_transfers != proof.expected_transfers:
        reasons.append(f"{proof.counted_transfers} KV transfers for {proof.expected_transfers} expected")
    if proof.counted_bytes != proof.expected_bytes:
        reasons.append(f"{proof.counted_bytes:,} KV bytes moved, {proof.expected_bytes:,} expected")
    # The last prompt token is always computed where the answer starts (vLLM v1/metrics/stats.py:277-280).
    if proof.decode_computed_tokens is None:
        reasons.append("no engine reports prompt tokens received from another one")
    elif proof.decode_computed_tokens > proof.requests:
        reasons.append(
            f"decode computed {proof.decode_computed_tokens:,} prompt tokens itself; at most 1 per request is due"
        )
    return reasons


def _decode_prompt_tokens(delta: Counters) -> tuple[int, int | None]:
    """Prompt tokens that decode had cached, and those it computed (None when no engine received any KV).

    Decode engines are those that received prompt tokens from outside; prefill receives none.
    """
    prompt, all_cached = delta.by_labels(PROMPT_TOKENS), delta.by_labels(CACHED_TOKENS)
    local = delta.by_labels(LOCAL_HITS)
    decode = [labels for labels, tokens in delta.by_labels(EXTERNAL_HITS).items() if tokens > 0]
    if not decode:
        return 0, None
    computed = sum(prompt.get(labels, 0) - all_cached.get(labels, 0) for labels in decode)
    return round(sum(local.get(labels, 0) for labels in decode)), round(computed)


def _foreign(proof: KvProof, transfers_per_request: int) -> int | None:
    if proof.counted_transfers is None:
        return None
    surplus = proof.counted_transfers - (proof.expected_transfers or 0)
    return max(0, math.ceil(surplus / transfers_per_request))


def _foreign_only(target: Target, requests: Sequence[Request], delta: Counters) -> KvProof:
    answered = delta.total(ANSWERED)
    surplus = max(0, round(answered - len(requests))) if answered is not None else None
    return KvProof(
        verdict="not applicable",
        reasons=[],
        requests=len(requests),
        foreign_requests=surplus,
        replica_changes=replica_changes(delta.only(WATCHED), target.deployment.replicas),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
