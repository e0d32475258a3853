"""How answers leave the engines: Ray Serve LLM collects tokens before it sends them on."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.serve_options import by_ray, older
from serving.guards.view import Engine, View

_KEY = "stream_batching_interval_ms"
_DIRECT = "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING"
_VARIABLE = "RAYLLM_MODEL_RESPONSE_BATCH_TIMEOUT_MS"
# Measured, Ray 2.57 on H200: with an interval of 0 one decode replica delivers 3,200 to 3,600 tokens/s. At 50 ms a
# token that is what 160 to 180 requests in the batch make.
_MOST_TOKENS_PER_SECOND = 3600
_SLOW_TOKEN_SECONDS = 0.05


def _interval(engine: Engine) -> Located | None:
    """What is written; null is as good as nothing to Ray."""
    given = engine.node.at("experimental_configs", _KEY)
    return None if given is None or given.value is None else given


@guard(
    "stream-interval-default",
    "note",
    what="Ray Serve LLM holds tokens back for 50 ms where nobody says otherwise",
    silently="every first token waits a full 50 ms, and then tokens come in lumps: ITL reads 0, 0, 0, 50 ms, and its "
    "percentiles say nothing about the engine",
    fix="write `experimental_configs: {stream_batching_interval_ms: 0}` on decode, or an interval that you chose",
    source="ray 2.55 to 2.60 llm/_internal/serve/utils/batcher.py:61-79; ray#59681, ray#64534",
    holds={"ray": ">=2.55,<2.61"},
)
def stream_interval_default(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        # With direct streaming vLLM's own server answers, but for prefill/decode.
        direct = engine.role == "aggregated" and engine.variable(_DIRECT) == "1" and not older(view, "ray", "2.56")
        if engine.role != "prefill" and not direct and _interval(engine) is None and engine.variable(_VARIABLE) is None:
            yield engine.node.at("experimental_configs", _KEY) or engine.node, f"no {_KEY} on {engine.role}"


@guard(
    "stream-interval-on-prefill",
    "error",
    what="`stream_batching_interval_ms` on prefill, which streams nothing, and not on decode",
    silently="decode keeps its 50 ms: every first token waits for them, and ITL comes in lumps",
    fix="write it under `experimental_configs` of `decode_config`",
    source="ray 2.55 to 2.60 llm/_internal/serve/core/server/llm_server.py: _get_batch_interval_ms; "
    "prefill_decode/pd_server.py (stream=False)",
    holds={"ray": ">=2.55,<2.61"},
)
def stream_interval_on_prefill(view: View) -> Iterator[Found]:
    for application in view.applications:
        prefill, decode = application.engine("prefill"), application.engine("decode")
        if prefill is None or decode is None:
            continue
        given = _interval(prefill)
        if given is not None and _interval(decode) is None and decode.variable(_VARIABLE) is None:
            yield given, f"{_KEY}: {given.value} on prefill alone"


@guard(
    "stream-interval-zero",
    "note",
    what="Every token of a large decode batch is sent on its own",
    silently="one decode replica passes some 3,200 to 3,600 tokens/s on; beyond that the GPU waits and clients get "
    "tokens long after they were made",
    fix="watch whether E2E grows with arrival time; then use an interval of some ms, or more decode replicas",
    source="measured: Ray 2.57, vLLM 0.25, 2 x H200, Qwen3-14B shape, 1,024 tokens in and out at 8 requests/s",
    holds={"ray": ">=2.55,<2.61"},
)
def stream_interval_zero(view: View) -> Iterator[Found]:
    if view.platform == "cpu":
        return
    for engine in by_ray(view):
        given = _interval(engine)
        batch = engine.integer("max_num_seqs", 256)  # vLLM's least default for a server on a GPU
        too_many = batch > _MOST_TOKENS_PER_SECOND * _SLOW_TOKEN_SECONDS
        if engine.role == "decode" and given is not None and given.number == 0 and too_many:
            yield given, f"max_num_seqs {batch}: {batch / _SLOW_TOKEN_SECONDS:,.0f} tokens/s at an ITL of 50 ms"
