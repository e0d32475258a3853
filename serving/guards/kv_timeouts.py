"""How long prefill keeps KV that decode has not read, and what becomes of a read that fails."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.transfer import by_nixl, connectors, known, whole
from serving.guards.view import View

_ABORT = "VLLM_NIXL_ABORT_REQUEST_TIMEOUT"
# vLLM's default, seconds (0.25 and 0.29, nixl/base_scheduler.py). 8 of 42 requests read freed blocks with it
# (aws-samples/aws-do-eks#84), which then raised it to 300.
_DEFAULT_LEASE = 30
# vLLM's default until it was raised to 480 because blocks went too early (vllm#25897).
_FORMER_TIMEOUT = 120


@guard(
    "kv-abort-timeout-gone",
    "error",
    what=f"{_ABORT} on a vLLM that no longer has it",
    silently="vLLM logs an unknown variable; prefill frees KV after the lease of 30 s, not after what is written",
    fix="set kv_lease_duration in kv_connector_extra_config, in seconds",
    source="vllm 0.25 and 0.29 envs.py (not in it), nixl/base_scheduler.py; vllm#41383",
    holds={"vllm": ">=0.25"},
)
def kv_abort_timeout_gone(view: View) -> Iterator[Found]:
    for engine in view.moving():
        if known(view, "vllm") and by_nixl(engine) and _ABORT in engine.environment:
            yield engine.environment[_ABORT], f"{_ABORT}={engine.variable(_ABORT) or ''}"


@guard(
    "kv-lease-not-read",
    "error",
    what="kv_lease_duration on a vLLM that does not read it",
    silently="nobody checks this object; prefill keeps KV for 480 s",
    fix=f"set {_ABORT} in the environment of prefill, in seconds",
    source="vllm 0.18 nixl_connector.py (not in it), envs.py:1378",
    holds={"vllm": ">=0.18,<0.19"},
)
def kv_lease_not_read(view: View) -> Iterator[Found]:
    for engine in view.moving():
        for one in connectors(engine):
            lease = one.extra.at("kv_lease_duration") if one.extra is not None else None
            if known(view, "vllm") and one.nixl and lease is not None:
                yield lease, f"kv_lease_duration {lease.value}"


@guard(
    "kv-lease-short",
    "warning",
    what="Prefill frees KV that decode has not read yet after 30 s or less",
    silently="under load decode reads blocks that hold another prompt by then; the answer is wrong, with HTTP 200",
    fix="set kv_lease_duration: 300 in kv_connector_extra_config of both sides",
    source="aws-samples/aws-do-eks#84 (8 of 42 requests), vllm#21570; vllm 0.25, 0.29 nixl/base_scheduler.py",
    holds={"vllm": ">=0.25,<0.30"},
)
def kv_lease_short(view: View) -> Iterator[Found]:
    for engine in view.moving():
        if not known(view, "vllm") or engine.role == "decode":
            continue
        for one in connectors(engine):
            lease = one.extra.at("kv_lease_duration") if one.extra is not None else None
            seconds = _DEFAULT_LEASE if lease is None else lease.number
            if one.nixl and seconds is not None and seconds <= _DEFAULT_LEASE:
                yield lease or whole(engine), f"{seconds:g} s" if lease else f"the default, {seconds} s"


@guard(
    "kv-abort-timeout-short",
    "warning",
    what="Prefill drops KV that waits longer for decode than a queue may take",
    silently="decode is not told: it reads blocks that hold another prompt by then, and answers with HTTP 200",
    fix=f"leave {_ABORT} unset (480 s), or well above the longest time in decode's queue",
    source="vllm#25897 (120 s was too short), vllm#21570 (open); vllm 0.18 nixl_connector.py:923",
    holds={"vllm": "<0.25"},
)
def kv_abort_timeout_short(view: View) -> Iterator[Found]:
    for engine in view.moving():
        given = engine.environment.get(_ABORT)
        value = given.at("value") if given is not None and isinstance(given.value, dict) else given
        if given is None or value is None or engine.role == "decode" or not by_nixl(engine):
            continue
        if value.number is not None and value.number < _FORMER_TIMEOUT:
            yield given, f"{value.number:g} s"


@guard(
    "kv-failure-policy-unset",
    "note",
    what="What decode does when it cannot read KV is left to vLLM",
    silently="the default, fail, ends a stream before its first token with HTTP 200 and no error in it",
    fix="choose kv_load_failure_policy: fail, and count answers without tokens; or recompute, and watch that KV moves",
    source="vllm#40986 (open); vllm 0.18 completion/serving.py:358-384, 0.29 :374-400; config/kv_transfer.py",
)
def kv_failure_policy_unset(view: View) -> Iterator[Found]:
    for engine in view.moving():
        if engine.role == "decode" and by_nixl(engine) and "kv_load_failure_policy" not in (engine.kv or {}):
            yield whole(engine), "no kv_load_failure_policy"


@guard(
    "kv-failure-recomputed",
    "note",
    what="Decode computes a prompt again when it cannot read its KV",
    silently="every request is answered although no KV moves; TTFT and ITL are those of engines that do both",
    fix="watch prompt_tokens_by_source and nixl_num_failed_transfers, or set fail while you measure",
    source="vllm 0.18 scheduler.py:2216-2280; vllm#49250 (wrong output on the V2 runner, open)",
)
def kv_failure_recomputed(view: View) -> Iterator[Found]:
    for engine in view.moving():
        policy = (engine.kv or {}).get("kv_load_failure_policy")
        if policy is not None and policy.value == "recompute" and engine.role != "prefill":
            yield policy, engine.role
