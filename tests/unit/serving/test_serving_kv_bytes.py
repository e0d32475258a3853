"""KV bytes against numbers that were counted on a real engine or follow from a model's published shape."""

import dataclasses

import pytest

from serving.kv_bytes import KvDtype, kv_bytes_moved, kv_bytes_per_token
from serving.models import DEEPSEEK_V3, QWEN3_235B, REHEARSAL, GroupedQueryAttention, Model

# The shape that ran on two GPUs: Qwen3-14B.
QWEN3_14B = dataclasses.replace(
    QWEN3_235B, name="qwen3-14b", layers=40, attention=GroupedQueryAttention(kv_heads=8, head_dim=128)
)


@pytest.mark.parametrize(
    ("model", "dtype", "tensor_parallel", "expected"),
    [
        pytest.param(REHEARSAL, "bfloat16", 1, 1_024, id="counted on CPU"),
        pytest.param(QWEN3_14B, "bfloat16", 1, 163_840, id="counted on two GPUs"),
        pytest.param(QWEN3_235B, "fp8", 1, 94 * 2 * 4 * 128, id="one rank holds all four heads"),
        pytest.param(QWEN3_235B, "fp8", 4, 94 * 2 * 4 * 128, id="four ranks hold one head each"),
        pytest.param(QWEN3_235B, "fp8", 8, 192_512, id="eight ranks hold every head twice"),
        pytest.param(QWEN3_235B, "bfloat16", 8, 2 * 192_512, id="twice the bytes in bfloat16"),
        pytest.param(DEEPSEEK_V3, "bfloat16", 1, 61 * (512 + 64) * 2, id="MLA: one latent vector, not K and V"),
        pytest.param(DEEPSEEK_V3, "fp8", 8, 61 * (512 + 64) * 8, id="MLA: every rank holds it whole"),
    ],
)
def test_bytes_per_token(model: Model, dtype: KvDtype, tensor_parallel: int, expected: int) -> None:
    assert kv_bytes_per_token(model, dtype, tensor_parallel) == expected


# Counted transfer by transfer on the pinned Ray, vLLM and NIXL: rehearsal model, block size 128.
MEASURED = {
    1: 131_072,
    50: 131_072,
    127: 131_072,
    128: 131_072,
    129: 262_144,
    256: 262_144,
    300: 393_216,
    700: 786_432,
}


@pytest.mark.parametrize(("tokens", "moved"), MEASURED.items())
def test_bytes_moved_for_a_prompt_are_those_measured(tokens: int, moved: int) -> None:
    assert kv_bytes_moved(tokens, 128, kv_bytes_per_token(REHEARSAL, "bfloat16", 1)) == moved


def test_smaller_blocks_pad_less() -> None:
    assert kv_bytes_moved(17, 16, 1_024) == 32 * 1_024
