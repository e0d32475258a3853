"""Prefill and decode that do not fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.transfer import by_nixl, compared, connectors, is_false, is_true, kv_format, pairs
from serving.guards.view import Engine, View

_COMPARED = "vllm 0.18 nixl_connector.py:193-235 compute_nixl_compatibility_hash"
_DIES = "the handshake fails with the first request; vLLM 0.18 then ends the decode engine (vllm#41863)"
# vLLM's block size where none is given, on GPUs and for most attention backends (0.18 config/cache.py).
_DEFAULT_BLOCK = 16


@guard(
    "pd-model-differs",
    "error",
    what="Prefill and decode load their weights from different sources",
    silently=f"Ray compares the model ids alone; NIXL compares the path of the model, and {_DIES}",
    fix="write the same repository or the same path on both sides",
    source=f"{_COMPARED}; ray 2.55 and 2.60 prefill_decode/builder.py _validate_model_ids",
)
def pd_model_differs(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        one, other = prefill.model, decode.model
        sources = [(value.text or "").rstrip("/") if value is not None else "" for value in (one, other)]
        if "$" in "".join(sources):  # a variable, which may be the same
            continue
        if other is not None and compared(prefill, decode) and all(sources) and sources[0] != sources[1]:
            yield other, f"prefill has {sources[0]}, decode {sources[1]}"


@guard(
    "pd-kv-format-differs",
    "error",
    what="Prefill and decode keep KV in different formats",
    silently=f"both engines start and report healthy; {_DIES}",
    fix="give both sides the same dtype, kv_cache_dtype, attention_backend and disable_hybrid_kv_cache_manager",
    source=_COMPARED,
)
def pd_kv_format_differs(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        if not compared(prefill, decode):
            continue
        for name in ("dtype", "kv_cache_dtype", "attention_backend", "disable_hybrid_kv_cache_manager"):
            one, other = kv_format(prefill, name), kv_format(decode, name)
            # `auto` takes what the model says, which is not known here; no model says fp8 for its KV unless it was made
            # for that, and then nobody writes it on one side alone.
            unsure = name != "kv_cache_dtype" or not any(v and v.startswith("fp8") for v in (one, other))
            if one != other and not (unsure and (one is None or other is None)):
                at = decode.argument(name) or prefill.argument(name)
                if at is not None:
                    yield at, f"{name}: prefill {one or 'auto'}, decode {other or 'auto'}"


@guard(
    "pd-block-size-differs",
    "warning",
    what="Prefill and decode cut KV into blocks of different size",
    silently="both start; models with more than one kind of layer lose accuracy or fail at the first transfer",
    fix="give both sides the same block_size",
    source="vllm 0.18 nixl_connector.py:2017-2108; vllm#42895 (accuracy 0.031, server healthy)",
)
def pd_block_size_differs(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        one, other = prefill.argument("block_size"), decode.argument("block_size")
        given = other or one
        if given is None or given.integer is None or not (by_nixl(prefill) and by_nixl(decode)):
            continue
        if one is None or other is None:
            # A backend may choose another size than the default, but hardly a large one.
            if view.platform in ("rocm", "cuda") and given.integer >= 8 * _DEFAULT_BLOCK:
                role = "decode" if other is not None else "prefill"
                yield given, f"{role} {given.integer}, the other vLLM's own"
        elif one.integer is not None and one.integer != given.integer:
            yield given, f"prefill {one.integer}, decode {given.integer}"


@guard(
    "pd-pipeline-parallel",
    "warning",
    what="Pipeline parallelism together with NIXL",
    silently="the handshake knows tensor parallel ranks alone: the engine hangs at start, or decode lacks layers",
    fix="use tensor_parallel_size instead; NixlPushConnector takes pipeline stages on prefill only (vLLM 0.29)",
    source="vllm#43366, ray#55775; vllm 0.29 nixl/base_worker.py:517-532",
)
def pd_pipeline_parallel(view: View) -> Iterator[Found]:
    for engine in view.moving():
        given = engine.argument("pipeline_parallel_size")
        push = all(one.called == "NixlPushConnector" for one in connectors(engine))
        if (
            given is not None
            and (given.integer or 1) > 1
            and by_nixl(engine)
            and not (push and engine.role == "prefill")
        ):
            yield given, f"{given.integer} stages in {engine.role}"


@guard(
    "pd-version-differs",
    "error",
    what="Prefill and decode run different versions of vLLM",
    silently=f"pods are Ready; NIXL compares vLLM's version, and {_DIES}",
    fix="deploy the same image on both sides, by digest, and roll both together",
    source=_COMPARED,
)
def pd_version_differs(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        if prefill.by_ray or not compared(prefill, decode):
            continue
        one, other = _version(prefill), _version(decode)
        if one and other and one[1] != other[1]:
            yield other[0], f"prefill {one[1]}, decode {other[1]}"


def _version(engine: Engine) -> tuple[Located, str] | None:
    image = engine.pod.container.at("image") if engine.pod is not None else None
    # vLLM's releases begin with 0; an image of someone's own may count from 1.
    match = re.search(r"vllm[\w-]*:v?(0\.\d+\.\d+\w*)", image.text) if image is not None and image.text else None
    return (image, match[1]) if image is not None and match else None


@guard(
    "pd-prefix-caching-differs",
    "note",
    what="Prefix caching is on for one of prefill and decode only",
    silently="decode pulls only what its cache lacks: bytes moved for a prompt are no longer tokens x bytes",
    fix="set enable_prefix_caching on both sides, or know why not",
    source="vllm 0.18 config/cache.py:66 (on by default), nixl_connector.py:746-751",
)
def pd_prefix_caching_differs(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        one, other = prefill.argument("enable_prefix_caching"), decode.argument("enable_prefix_caching")
        at = other or one
        if at is not None and is_false(one) != is_false(other):
            off = "prefill" if is_false(one) else "decode"
            yield at, f"off in {off}, on in the other"


@guard(
    "pd-lora-differs",
    "warning",
    what="LoRA on one of prefill and decode only",
    silently="prefill computes KV without the adapter that decode answers with, or refuses the request",
    fix="configure LoRA on both sides with the same path; Ray 2.60 refuses anything else",
    source="ray 2.60 prefill_decode/builder.py:83-99 _validate_lora_configs (not in 2.55)",
)
def pd_lora_differs(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        if prefill.by_ray:
            one, other = prefill.node.at("lora_config"), decode.node.at("lora_config")
        else:
            one, other = prefill.argument("enable_lora"), decode.argument("enable_lora")
            one, other = one if is_true(one) else None, other if is_true(other) else None
        given = [value for value in (one, other) if value is not None and value.value]
        if len(given) == 1:
            yield given[0], f"only {'prefill' if given[0] is one else 'decode'} has it"
        elif len(given) == 2:
            paths = [value.at("dynamic_lora_loading_path") for value in given]
            if (paths[0].value if paths[0] else None) != (paths[1].value if paths[1] else None):
                yield paths[1] or given[1], "the paths differ"


@guard(
    "pd-decode-context-shorter",
    "warning",
    what="Decode takes shorter sequences than prefill",
    silently="longer prompts are prefilled, then refused by decode, and prefill keeps their KV until its timeout",
    fix="give decode the max_model_len of prefill or more: it holds prompt and answer",
    source="vllm#41269 (blocks stranded by a refusal before admission)",
)
def pd_decode_context_shorter(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        one, other = prefill.argument("max_model_len"), decode.argument("max_model_len")
        if one is not None and other is not None and one.integer and other.integer and 0 < other.integer < one.integer:
            yield other, f"prefill {one.integer}, decode {other.integer} tokens"
