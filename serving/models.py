"""The models that can be served, and the shape facts from which their KV bytes follow.

Shapes are those of each model's public config.json (named in `source`). They are needed before anything is downloaded:
the KV proof of a benchmark compares bytes on the wire with tokens x bytes per token.
"""

from dataclasses import dataclass

from serving.errors import ConfigError


@dataclass(frozen=True)
class GroupedQueryAttention:
    """K and V of every KV head are cached. `kv_heads` heads of `head_dim` elements each."""

    kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class LatentAttention:
    """MLA: one latent vector of `kv_lora_rank` + `rope_head_dim` elements per token and layer, not K and V."""

    kv_lora_rank: int
    rope_head_dim: int


@dataclass(frozen=True)
class Model:
    """One servable model.

    name: the key in stack files and the served model id. repository: Hugging Face id, or None when it is made on the
    spot. max_model_len: longest context the model was trained for. gigabytes: size of its weights, 10^9 bytes.
    """

    name: str
    repository: str | None
    layers: int
    attention: GroupedQueryAttention | LatentAttention
    max_model_len: int
    mixture_of_experts: bool
    gigabytes: float
    source: str


QWEN3_235B = Model(
    name="qwen3-235b-a22b-fp8",
    repository="Qwen/Qwen3-235B-A22B-FP8",
    layers=94,
    attention=GroupedQueryAttention(kv_heads=4, head_dim=128),
    max_model_len=40960,
    mixture_of_experts=True,
    gigabytes=237,  # FP8: a byte for each of 235 billion parameters, and their scales
    source="huggingface.co/Qwen/Qwen3-235B-A22B-FP8 config.json",
)

DEEPSEEK_V3 = Model(
    name="deepseek-v3-0324",
    repository="deepseek-ai/DeepSeek-V3-0324",
    layers=61,
    attention=LatentAttention(kv_lora_rank=512, rope_head_dim=64),
    max_model_len=163840,
    mixture_of_experts=True,
    gigabytes=689,  # FP8: 685 billion parameters with the prediction layer (model card), and their scales
    source="huggingface.co/deepseek-ai/DeepSeek-V3-0324 config.json",
)

# Made on the spot by serving/rehearsal_model.py, which takes its shape from here: a tiny mixture-of-experts model with
# dummy weights. It rehearses the whole path on a CPU; it says nothing about any real model's quality or speed.
REHEARSAL = Model(
    name="rehearsal-qwen3-moe",
    repository=None,
    layers=4,
    attention=GroupedQueryAttention(kv_heads=2, head_dim=32),
    max_model_len=4096,
    mixture_of_experts=True,
    gigabytes=0,  # made up by vLLM where they are needed
    source="serving/rehearsal_model.py",
)

MODELS = {model.name: model for model in (QWEN3_235B, DEEPSEEK_V3, REHEARSAL)}


def model(name: str) -> Model:
    """The model of that name. Raises ConfigError, listing the known names, when there is none."""
    try:
        return MODELS[name]
    except KeyError:
        raise ConfigError("model", f"unknown model {name!r}", f"known: {', '.join(MODELS)}") from None
