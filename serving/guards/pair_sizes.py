"""Prefill and decode of different tensor parallel sizes: heads are cut between ranks, and not alike on both sides."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from serving.guards.guard import Found, guard
from serving.guards.transfer import by_nixl, connectors, known, kv_format, pairs
from serving.guards.view import Engine, View
from serving.models import LatentAttention

# Models with MLA by their usual names (vllm 0.18 transformers_utils/model_arch_config_convertor.py is_deepseek_mla);
# what was distilled from R1 is Qwen's and Llama's.
_MLA = re.compile(
    r"deepseek-?(coder-)?(v2|v3|r1(?!-distill))|kimi-(k2|linear|vl)|moonlight|glm-5|glm-4\.7-flash|longcat-flash|"
    r"mistral-large-3|pangu-ultra",
    re.IGNORECASE,
)


@guard(
    "pd-tp-differs-on-rocm",
    "error",
    what="Prefill and decode have different tensor parallel sizes on ROCm with vLLM 0.18",
    silently="heads are cut at the wrong places and answers are wrong: accuracy near 0, no error",
    fix="give both sides the same tensor_parallel_size, or `attention_backend: ROCM_ATTN`, which keeps heads apart",
    source="vllm#37703, #35444, #37940 (not in 0.18); vllm 0.18 triton_attn.py:306-316; for ROCM_ATTN its "
    "v1/attention/ops/paged_attn.py split_kv_cache, llm-d's AMD guide",
    holds={"vllm": ">=0.18,<0.19"},
)
def pd_tp_differs_on_rocm(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        if _rocm_018(view) and not _whole_heads(view, prefill, decode) and by_nixl(prefill) and by_nixl(decode):
            yield from _tp(prefill, decode)


@guard(
    "pd-tp-differs",
    "warning",
    what="Prefill and decode have different tensor parallel sizes where that is known to go wrong",
    silently="answers are wrong or the decode engine dies at the first request, depending on the attention backend",
    fix="give both sides the same size; on CUDA decode may have more ranks than prefill, not fewer",
    source="vllm#43523 (prefill 4, decode 1; before 0.25); vllm#35444, llm-d's AMD guide (ROCm; all backends of 0.29 "
    "keep heads apart); vllm#41211 (MoRIIO; 0.29 takes different sizes for MLA alone)",
)
def pd_tp_differs(view: View) -> Iterator[Found]:
    for prefill, decode in pairs(view):
        nixl = by_nixl(prefill) and by_nixl(decode)
        version, apart = known(view, "vllm"), _whole_heads(view, prefill, decode)
        if nixl and _rocm_018(view) and not apart:
            continue  # pd-tp-differs-on-rocm says it
        newer = version is not None and version >= Version("0.29")
        fewer = prefill.integer("tensor_parallel_size", 1) > decode.integer("tensor_parallel_size", 1)
        fewer = fewer and version is not None and version < Version("0.25")
        moriio = any(one.called == "MoRIIOConnector" for one in connectors(decode))
        moriio = moriio and not (newer and _latent(view, decode))
        if moriio or (nixl and (fewer or (view.platform == "rocm" and not newer and not apart))):
            yield from _tp(prefill, decode)


def _rocm_018(view: View) -> bool:
    version = known(view, "vllm")
    return view.platform == "rocm" and version is not None and version.release[:2] == (0, 18)


def _latent(view: View, engine: Engine) -> bool:
    """Whether a model keeps one latent vector, which every rank has whole: there are no heads to cut."""
    named = engine.model.text if engine.model is not None else None
    if view.model is not None:
        return isinstance(view.model.attention, LatentAttention)
    return named is not None and _MLA.search(named) is not None


def _whole_heads(view: View, prefill: Engine, decode: Engine) -> bool:
    """Whether no head is cut, on ROCm: there are none, or ROCM_ATTN keeps each in one piece (vllm 0.18)."""
    backends = {kv_format(engine, "attention_backend") for engine in (prefill, decode)}
    return _latent(view, decode) or backends == {"rocm_attn"}


def _tp(prefill: Engine, decode: Engine) -> Iterator[Found]:
    one, other = prefill.integer("tensor_parallel_size", 1), decode.integer("tensor_parallel_size", 1)
    at = decode.argument("tensor_parallel_size") or prefill.argument("tensor_parallel_size")
    if one != other and at is not None:
        yield at, f"prefill {one}, decode {other}"
