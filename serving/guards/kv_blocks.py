"""The size of KV blocks, which is how many pieces a prompt moves in."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.transfer import by_nixl, connectors
from serving.guards.view import Engine, View
from serving.models import MODELS, LatentAttention, Model

# 40,960 descriptors (40 layers, K and V, blocks of 16, a prompt of 8,192) took 0.1 to 0.2 s to post, in which no other
# sequence got a token; an eighth of them took 16 ms (measured: 2 x H200, vLLM 0.25).
_STALLING = 40_960
_SMALL = 32
# Prompts of this length are 512 blocks of 32 tokens. Fewer layers than 40 are of models so small that it matters less.
_LONG = 16_384
# vLLM's own on CUDA for most attention backends; on ROCm and CPU others are chosen.
_CUDA_DEFAULT = 16


@guard(
    "kv-blocks-small",
    "warning",
    what="KV blocks so small that a long prompt moves in tens of thousands of pieces",
    silently="decode posts every piece inside its own step: each new request stalls the ITL of all others",
    fix="set block_size: 128 on both sides, where the attention backend takes it",
    source="measured on 2 x H200 with vLLM 0.25: 40,960 descriptors 0.1-0.2 s, 5,120 descriptors 16 ms",
)
def kv_blocks_small(view: View) -> Iterator[Found]:
    for engine in view.moving():
        length, size = engine.argument("max_model_len"), _block(view, engine)
        # Pulling is decode's work; pushing, prefill's. Where the role is not said it may be either.
        pushed = all(one.called == "NixlPushConnector" for one in connectors(engine))
        idle = "decode" if pushed else "prefill"
        if not by_nixl(engine) or engine.role == idle or length is None or length.integer is None or size is None:
            continue
        block, at = size
        blocks = -(-length.integer // block)
        model = view.model or _model(engine)
        if model is not None:
            pieces = model.layers * (1 if isinstance(model.attention, LatentAttention) else 2) * blocks
            if pieces >= _STALLING:
                yield at, f"blocks of {block}: {pieces} descriptors for a prompt of {length.integer} tokens"
        elif length.integer >= _LONG:
            yield at, f"blocks of {block}: {blocks} for a prompt of {length.integer} tokens, twice in each layer"


def _block(view: View, engine: Engine) -> tuple[int, Located] | None:
    """The size of a block where it is small, and what to blame."""
    given = engine.argument("block_size")
    if given is None:
        length = engine.argument("max_model_len")
        return (_CUDA_DEFAULT, length) if view.platform == "cuda" and length is not None else None
    size = given.integer
    return (size, given) if size is not None and 0 < size <= _SMALL else None


def _model(engine: Engine) -> Model | None:
    named = engine.model.text if engine.model is not None else None
    return next((model for model in MODELS.values() if named and named == model.repository), None)
