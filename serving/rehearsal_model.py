"""Makes the rehearsal model: a configuration and a tokenizer, no weights (vLLM fills in dummy ones, always the same).

Run inside the CPU runtime environment, which has `tokenizers`: python -m serving.rehearsal_model DIRECTORY
"""

import json
import os
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from serving.models import REHEARSAL, GroupedQueryAttention

VOCABULARY = 1024
END = "<|endoftext|>"
_LICENSE = Path(__file__).resolve().parent.parent / "LICENSE"


def make(directory: Path) -> None:
    """Write config.json, tokenizer.json and tokenizer_config.json into `directory`, which appears all at once."""
    unfinished = directory.with_name(f"{directory.name}.{os.getpid()}.tmp")
    unfinished.mkdir(parents=True, exist_ok=True)
    _tokenizer().save(str(unfinished / "tokenizer.json"))
    _write(unfinished / "config.json", _configuration())
    _write(
        unfinished / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "pad_token": END,
            "model_max_length": REHEARSAL.max_model_len,
        },
    )
    try:
        unfinished.rename(directory)
    except OSError:  # another run was first and made the same files
        if not (directory / "config.json").exists():
            raise


def _tokenizer() -> Tokenizer:
    """Byte-level BPE trained on the licence text, the one text that every checkout has and nobody edits."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([_LICENSE.read_text()], trainer)
    return tokenizer


def _configuration() -> dict[str, object]:
    """A Qwen3 mixture of experts of a few million parameters; attention and depth as serving/models.py says."""
    attention = REHEARSAL.attention
    assert isinstance(attention, GroupedQueryAttention)  # noqa: S101
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "vocab_size": VOCABULARY,
        "hidden_size": 128,
        "intermediate_size": 256,
        "moe_intermediate_size": 64,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "num_hidden_layers": REHEARSAL.layers,
        "num_attention_heads": 4,
        "num_key_value_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "max_position_embeddings": REHEARSAL.max_model_len,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "torch_dtype": "bfloat16",
    }


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
