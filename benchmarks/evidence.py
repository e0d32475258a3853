"""The KV proof: did every prompt's KV cache move from prefill to decode, byte for byte?

The numbers come from counters that this repository's engine callback keeps on decode (`pd_kv_*`, exported by Ray as
`ray_pd_kv_*_total`), because Ray rebuilds the `_sum` of vLLM's own histogram from bucket midpoints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from benchmarks import causes, prompt_tokens
from benchmarks.causes import Cause
from benchmarks.metrics import Counters
from benchmarks.prompt_tokens import PromptTokens
from benchmarks.records import Request
from benchmarks.replicas import replica_changes, replica_of
from benchmarks.target import KvShape, Target
from benchmarks.transfer import BYTES, COUNTED, TRANSFERS, Transfers, transfers_by_replica
from benchmarks.transport import Transport
from serving.kv_bytes import kv_bytes_moved

# vLLM's NIXL counters (0.18 nixl_connector.py:3004-3073); Ray shows a counter only after its first increment.
FAILED_TRANSFERS = "failed transfers"
FAILED_NOTIFICATIONS = "failed notifications"
EXPIRED = "expired KV blocks"
FAILURES = {
    FAILED_TRANSFERS: "ray_vllm_nixl_num_failed_transfers_total",
    FAILED_NOTIFICATIONS: "ray_vllm_nixl_num_failed_notifications_total",
    EXPIRED: "ray_vllm_nixl_num_kv_expired_reqs_total",
}
ANSWERED = "ray_vllm_request_success_total"
# The number of observations of a histogram is exact through Ray; only the sum is not.
VLLM_TRANSFERS = "ray_vllm_nixl_bytes_transferred_count"

WATCHED = (*COUNTED, VLLM_TRANSFERS, *FAILURES.values(), *prompt_tokens.WATCHED, ANSWERED)


class KvProof(BaseModel):
    """Verdict and numbers. Bytes are bytes, tokens are tokens; None means that the service does not report it.

    `causes` say why it failed, one for each way of failing, `reasons` are their sentences. `decode_computed_tokens` are
    prompt tokens that decode computed itself instead of receiving their KV; `tokens` has all sources. `transfers` are
    the reads of each decode replica, `vllm_transfers` how many vLLM itself saw. `replica_changes` says, a sentence
    each, that the replicas were not the same all the time. `transport` is None in a run that did not look for it.
    """

    verdict: Literal["proven", "failed", "not applicable"]
    reasons: list[str]
    causes: list[Cause] = []
    requests: int
    prompt_tokens: int | None = None
    expected_bytes: int | None = None
    counted_bytes: int | None = None
    expected_transfers: int | None = None
    counted_transfers: int | None = None
    failures: dict[str, int] = {}
    decode_computed_tokens: int | None = None
    decode_cached_tokens: int = 0
    tokens: PromptTokens | None = None
    transfers: list[Transfers] = []
    vllm_transfers: int | None = None
    foreign_requests: int | None = None
    replica_changes: list[str] = []
    transport: Transport | None = None


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
    if names := delta.only(WATCHED).not_finite():
        cause = causes.unreadable(names)
        return KvProof(verdict="failed", reasons=[cause.sentence], causes=[cause], requests=len(requests))
    known = [request.prompt_tokens for request in requests if request.prompt_tokens is not None]
    tokens = prompt_tokens.prompt_tokens(delta)
    whole = sum(kv_bytes_moved(length, target.kv.block_size, target.kv.bytes_per_token) for length in known)
    proof = KvProof(
        verdict="failed",
        reasons=[],
        requests=len(requests),
        prompt_tokens=sum(known),
        # vLLM pulls only the blocks that decode's own prefix cache lacks (0.18 nixl_connector.py:720-751).
        expected_bytes=whole - tokens.cached * target.kv.bytes_per_token,
        counted_bytes=_whole(delta.total(BYTES)),
        expected_transfers=len(requests) * target.deployment.transfers_per_request,
        counted_transfers=_whole(delta.total(TRANSFERS)),
        failures={label: round(delta.total(name) or 0) for label, name in FAILURES.items()},
        decode_computed_tokens=tokens.computed,
        decode_cached_tokens=tokens.cached,
        tokens=tokens,
        transfers=transfers_by_replica(delta),
        vllm_transfers=_whole(delta.total(VLLM_TRANSFERS)),
        replica_changes=replica_changes(delta.only(WATCHED), target.deployment.replicas),
    )
    proof.foreign_requests = _foreign(proof, target.deployment.transfers_per_request)
    proof.causes = _causes(proof, known, target.kv, target, delta)
    proof.reasons = [cause.sentence for cause in proof.causes]
    proof.verdict = "failed" if proof.causes else "proven"
    return proof


def _causes(proof: KvProof, known: Sequence[int], kv: KvShape, target: Target, delta: Counters) -> list[Cause]:
    expired: dict[str, int] = {}
    for labels, count in delta.by_labels(FAILURES[EXPIRED]).items():
        replica = replica_of(labels) or "?"
        expired[replica] = expired.get(replica, 0) + round(count)
    tokens = proof.tokens or PromptTokens()
    found = [
        causes.uncounted(proof.requests, len(known)),
        causes.failed_transfers(proof.failures[FAILED_TRANSFERS]),
        causes.failed_notifications(proof.failures[FAILED_NOTIFICATIONS]),
        causes.expired(expired),
        *(Cause(id="replicas", name="replicas changed", sentence=change) for change in proof.replica_changes),
        causes.foreign(proof.foreign_requests),
        *_of_amounts(proof, known, kv, target.deployment.engine.get("prefill", {}).get("block_size")),
        causes.recomputed(tokens, proof.requests, proof.prompt_tokens or 0)
        or causes.computed_unknown(tokens)
        or causes.unreceived(tokens, proof.counted_transfers),
    ]
    return [cause for cause in found if cause]


def _of_amounts(
    proof: KvProof, known: Sequence[int], kv: KvShape, prefill_block_size: int | None
) -> list[Cause | None]:
    """What is wrong with the numbers of transfers and of bytes, where any were counted."""
    counted, moved, due = proof.counted_transfers, proof.counted_bytes or 0, proof.expected_transfers or 0
    if not counted:
        return [causes.missing()]
    blocks = causes.configured_block_sizes(kv.block_size, prefill_block_size)
    if blocks is None and counted == due and len(known) == proof.requests:
        cached = proof.decode_cached_tokens
        blocks = causes.unequal_block_sizes(moved, known, kv.block_size, kv.bytes_per_token, cached)
    if blocks:
        return [blocks, causes.wrong_count(counted, due)]
    return [causes.wrong_count(counted, due), causes.wrong_bytes(moved, proof.expected_bytes or 0)]


def _foreign(proof: KvProof, transfers_per_request: int) -> int | None:
    if proof.counted_transfers is None:
        return None
    surplus = proof.counted_transfers - (proof.expected_transfers or 0)
    return max(0, math.ceil(surplus / transfers_per_request))


def _foreign_only(target: Target, requests: Sequence[Request], delta: Counters) -> KvProof:
    answered = delta.total(ANSWERED)
    surplus = None
    if answered is not None and math.isfinite(answered):
        surplus = max(0, round(answered - len(requests)))
    return KvProof(
        verdict="not applicable",
        reasons=[],
        requests=len(requests),
        foreign_requests=surplus,
        replica_changes=replica_changes(delta.only(WATCHED), target.deployment.replicas),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
