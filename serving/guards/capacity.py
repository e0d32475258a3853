"""Whether weights, KV and batches fit into the GPUs that they are given."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.read import on_cpu
from serving.guards.sizes import GIB, gpu_memory, known_model, ranks
from serving.guards.view import Engine, View
from serving.kv_bytes import kv_bytes_per_token
from serving.models import Model

_UTILIZATION = 0.9  # vllm 0.18 config/cache.py
# With more than this the rest of 256 GB is less than 8 GB, and of 80 GB less than 2.5: RCCL or NCCL, graphs and UCX's
# registrations are outside of what vLLM counts (vllm 0.18 docs, conserving memory).
_MOST_UTILIZATION = 0.97
# What changes how many bytes the weights are, or where they or the KV cache lie.
_OTHER_SIZES = ("quantization", "cpu_offload_gb", "hf_overrides", "kv_cache_memory_bytes", "num_gpu_blocks_override")
_LONGER = ("hf_overrides", "rope_scaling", "rope_theta", "rope_parameters")


def _room(engine: Engine, view: View) -> tuple[Model, float] | None:
    """The model, and bytes of all GPUs of a replica that vLLM may take for it; None where either is not known."""
    model, each = known_model(engine, view), gpu_memory(engine, view)
    other = any(name in engine.arguments for name in _OTHER_SIZES) or not ranks(engine) or engine.gpus != ranks(engine)
    if model is None or each is None or other or on_cpu(engine):
        return None
    said = engine.argument("gpu_memory_utilization")
    share = _UTILIZATION if said is None else said.number
    return (model, engine.gpus * each * share) if share is not None and 0 < share <= 1 else None


@guard(
    "weights-do-not-fit",
    "error",
    what="The model's weights are larger than what vLLM may take of the replica's GPUs",
    silently="the engine ends with out of memory after minutes of loading, and Kubernetes or Ray starts it again",
    fix="raise tensor_parallel_size or gpu_memory_utilization, or take a smaller or quantized model",
    source="sizes: serving/models.py; GPU memory: the makers; vllm 0.18 config/cache.py (utilization 0.9)",
)
def weights_do_not_fit(view: View) -> Iterator[Found]:
    for engine in view.engines:
        room = _room(engine, view)
        if room and room[0].gigabytes * 1e9 > room[1]:
            at = engine.argument("gpu_memory_utilization") or engine.argument("tensor_parallel_size") or engine.model
            words = f"{room[0].gigabytes:g} GB of weights, {room[1] / 1e9:.0f} GB on {engine.gpus} GPUs"
            yield at or engine.node, words


@guard(
    "context-does-not-fit",
    "error",
    what="The KV of one request of max_model_len is larger than what the weights leave free",
    silently="the engine loads for minutes and then ends with a ValueError, and Kubernetes or Ray starts it again",
    fix="lower max_model_len, or raise tensor_parallel_size",
    source="serving/kv_bytes.py; vllm 0.18 v1/core/kv_cache_utils.py _check_enough_kv_cache_memory",
)
def context_does_not_fit(view: View) -> Iterator[Found]:
    for engine in view.engines:
        room, said = _room(engine, view), engine.argument("max_model_len")
        if not room or (said is not None and (said.integer is None or said.integer <= 0)):  # `auto`: what fits
            continue
        model, free = room[0], room[1] - room[0].gigabytes * 1e9
        tokens = engine.integer("max_model_len", model.max_model_len)
        dtype = engine.argument("kv_cache_dtype")
        fp8 = dtype is not None and str(dtype.value).startswith("fp8")
        tensor_parallel = engine.integer("tensor_parallel_size", 1)
        needed = tokens * kv_bytes_per_token(model, "fp8" if fp8 else "bfloat16", tensor_parallel)
        if 0 < free < needed and tokens <= model.max_model_len:
            at = said or engine.argument("tensor_parallel_size") or engine.model
            yield at or engine.node, f"{needed / GIB:.1f} GiB of KV, {free / GIB:.1f} GiB free"


@guard(
    "context-beyond-model",
    "error",
    what="max_model_len is more than the model was made for",
    silently="vLLM refuses it, or with VLLM_ALLOW_LONG_MAX_MODEL_LEN answers long prompts with nonsense",
    fix="lower it to the model's own, or give the model's rope scaling in hf_overrides",
    source="vllm 0.18 config/model.py _get_and_verify_max_len; serving/models.py",
)
def context_beyond_model(view: View) -> Iterator[Found]:
    for engine in view.engines:
        said, model = engine.argument("max_model_len"), known_model(engine, view)
        if said is None or said.integer is None or model is None or any(n in engine.arguments for n in _LONGER):
            continue
        if said.integer > model.max_model_len:
            yield said, f"{said.integer} tokens, {model.name} has {model.max_model_len}"


@guard(
    "batch-below-sequences",
    "error",
    what="max_num_batched_tokens is smaller than max_num_seqs",
    silently="vLLM ends with a ValueError at start, and Kubernetes or Ray starts it again, for ever",
    fix="raise max_num_batched_tokens, or lower max_num_seqs: a decode step has a token of every request",
    source="vllm 0.18 config/scheduler.py verify_max_model_len",
)
def batch_below_sequences(view: View) -> Iterator[Found]:
    for engine in view.engines:
        tokens, requests = engine.argument("max_num_batched_tokens"), engine.argument("max_num_seqs")
        if tokens is None or requests is None or tokens.integer is None or requests.integer is None:
            continue
        if 0 < tokens.integer < requests.integer:
            yield tokens, f"{tokens.integer} tokens, {requests.integer} requests"


@guard(
    "batch-below-context",
    "error",
    what="Without chunked prefill max_num_batched_tokens is smaller than max_model_len",
    silently="vLLM ends with a ValueError at start, since a long prompt would never be computed",
    fix="raise max_num_batched_tokens to max_model_len, or leave chunked prefill on",
    source="vllm 0.18 config/scheduler.py verify_max_model_len",
)
def batch_below_context(view: View) -> Iterator[Found]:
    for engine in view.engines:
        tokens, longest = engine.argument("max_num_batched_tokens"), engine.argument("max_model_len")
        chunked = engine.argument("enable_chunked_prefill")
        off = chunked is not None and str(chunked.value).lower() == "false"
        if tokens is None or longest is None or tokens.integer is None or longest.integer is None or not off:
            continue
        if 0 < tokens.integer < longest.integer:
            yield tokens, f"{tokens.integer} tokens a step, max_model_len {longest.integer}"


@guard(
    "gpu-memory-to-the-brim",
    "warning",
    what="gpu_memory_utilization leaves next to nothing for what vLLM does not count",
    silently="it starts, and under load RCCL or NCCL, graphs or the NIC's registrations run out of memory",
    fix="write at most 0.95; engines that move KV by RDMA do well with 0.85 to 0.9",
    source="vllm 0.18 docs, conserving memory; config/cache.py (default 0.9)",
)
def gpu_memory_to_the_brim(view: View) -> Iterator[Found]:
    for engine in view.engines:
        said = engine.argument("gpu_memory_utilization")
        if said is not None and said.number is not None and _MOST_UTILIZATION < said.number <= 1 and not on_cpu(engine):
            yield said, f"{said.number:g} of the GPU's memory"


@guard(
    "engines-share-a-gpu",
    "warning",
    what="A replica gets a part of a GPU, and takes more than that part of its memory",
    silently="the first replica on a GPU starts, the second ends with too little free memory and is started again",
    fix="write gpu_memory_utilization below the bundle's GPU: 0.45 for half a GPU",
    source="vllm 0.18 v1/worker/utils.py (Free memory is less than desired); ray 2.55 llm vllm_models.py (fractional)",
)
def engines_share_a_gpu(view: View) -> Iterator[Found]:
    for engine in view.engines:
        parts = [gpu.number for bundle in engine.bundles if (gpu := bundle.at("GPU")) and gpu.number]
        said = engine.argument("gpu_memory_utilization")
        share = _UTILIZATION if said is None else said.number
        if parts and share is not None and 0 < min(parts) < min(share, 1):
            bundle = next(gpu for b in engine.bundles if (gpu := b.at("GPU")) and gpu.number == min(parts))
            yield said or bundle, f"{min(parts):g} of a GPU, {share:g} of its memory"
