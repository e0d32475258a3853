"""How many KV bytes one token is, and how many a prompt moves from prefill to decode."""

from typing import Literal

from serving.models import GroupedQueryAttention, Model

KvDtype = Literal["bfloat16", "fp8"]
_BYTES: dict[KvDtype, int] = {"bfloat16": 2, "fp8": 1}


def kv_bytes_per_token(model: Model, dtype: KvDtype, tensor_parallel: int) -> int:
    """Bytes that all `tensor_parallel` ranks of one replica hold, and NIXL moves, per token.

    Ranks beyond the number of KV heads hold copies, and an MLA latent vector is held whole by every rank, so the sum
    grows with tensor parallelism where a model's nominal KV size does not (vLLM 0.18: `ModelConfig.get_num_kv_heads`
    gives each rank max(1, heads // tp); `nixl_connector.py` reads per rank). Checked by counting for one rank on CPU
    (1,024 bytes) and on two GPUs with one rank each (163,840 bytes); not yet for more than one rank.
    """
    attention = model.attention
    if isinstance(attention, GroupedQueryAttention):
        heads_per_rank = max(1, attention.kv_heads // tensor_parallel)
        elements_per_rank = 2 * heads_per_rank * attention.head_dim  # 2: K and V
    else:
        elements_per_rank = attention.kv_lora_rank + attention.rope_head_dim
    return model.layers * elements_per_rank * _BYTES[dtype] * tensor_parallel


def kv_bytes_moved(prompt_tokens: int, block_size: int, bytes_per_token: int) -> int:
    """Bytes NIXL moves for one prompt: whole blocks, the last one padded. An equality, not an estimate.

    Source: counted transfer by transfer on Ray 2.55 / vLLM 0.18 for prompts of 1 to 700 tokens at block size 128.
    """
    blocks = -(-prompt_tokens // block_size)
    return blocks * block_size * bytes_per_token
