"""Names of vLLM's arguments under `engine_kwargs`, and those that are Ray's to give."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.near_names import meant
from serving.guards.program_schemas import schemas
from serving.guards.serve_options import by_ray, uses_gpus
from serving.guards.view import View

_READ = SpecifierSet(">=0.18,<0.19")  # the release that program_schemas.json is of
# Ray hands on those of the engine, and those of vLLM's server (vllm_models.py: from_llm_config).
_KNOWN = frozenset((*schemas()["engine"], *schemas()["frontend"]))
# Where later releases have arguments of their own, only what is all but equal is taken for a mistake: it lets
# `gpu_memory_utilisation` be one, and a new `kv_offloading_tier` beside the known `kv_offloading_size` not.
_ALL_BUT_EQUAL = 0.92
_NEWER = ("cpu_distributed_timeout_seconds",)  # of vLLM 0.29: the only one that is as near to an old one
# Least values of fields of vLLM's configuration, which its arguments do not have in their types (vllm 0.18
# config/scheduler.py, lora.py, model.py). Of `stream_interval` streaming.py speaks.
_AT_LEAST = {
    **dict.fromkeys(("max_num_batched_tokens", "max_num_seqs", "max_loras"), 1),
    **dict.fromkeys(("max_num_partial_prefills", "max_long_partial_prefills"), 1),
    "max_model_len": -1,
}
_OF_RAY = ("model", "served_model_name")


def _unknown(view: View, near_enough: float = 0.8) -> Iterator[tuple[Located, str, str]]:
    for engine in by_ray(view):
        for name, value in engine.arguments.items():
            if name not in _KNOWN:
                yield value, name, meant(name, _KNOWN, near_enough)


@guard(
    "engine-argument-refused",
    "error",
    what="An engine argument that vLLM does not have",
    silently="LLMConfig takes it, and only the building of the engine fails (`Unknown engine argument`): "
    "no replica ever starts",
    fix="write the argument as vLLM's Python interface has it, with underscores",
    source="ray 2.55 llm/_internal/serve/engines/vllm/vllm_models.py: from_llm_config; vllm 0.18 engine/arg_utils.py",
    holds={"vllm": ">=0.18,<0.19"},
)
def engine_argument_refused(view: View) -> Iterator[Found]:
    if view.version("vllm") is not None:  # which arguments a commit has is not known
        for value, name, near in _unknown(view):
            yield value, f"{name}{near}"


@guard(
    "engine-argument-misspelt",
    "warning",
    what="An engine argument that vLLM 0.18 does not have, and that is close to one that it has",
    silently="if this vLLM does not have it either, only the building of the engine fails, and no replica ever starts",
    fix="write the argument as vLLM's Python interface has it, with underscores",
    source="ray 2.55 to 2.60 llm/_internal/serve/engines/vllm/vllm_models.py: from_llm_config; vllm 0.18",
)
def engine_argument_misspelt(view: View) -> Iterator[Found]:
    version = view.version("vllm")
    if version is not None and not _READ.contains(version, prereleases=True):
        for value, name, near in _unknown(view, _ALL_BUT_EQUAL):
            if near and name not in _NEWER:
                yield value, f"{name}{near}"


@guard(
    "engine-argument-of-ray",
    "error",
    what="An engine argument that Ray Serve LLM gives itself: the model, its served name, or the executor on GPUs",
    silently="LLMConfig takes it, and only the start of the engine fails: no replica ever starts",
    fix="name the model in `model_loading_config` (`model_id` is what clients ask for, `model_source` where weights "
    "lie), and leave `distributed_executor_backend` out",
    source="ray 2.55 to 2.60 llm/_internal/serve/engines/vllm/vllm_models.py: get_initialization_kwargs",
)
def engine_argument_of_ray(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        for name in _OF_RAY:
            if (given := engine.argument(name)) is not None:
                yield given, f"{name}: {given.value}"
        executor = engine.argument("distributed_executor_backend")
        if executor is not None and executor.text and executor.text != "ray" and uses_gpus(view, engine):
            yield executor, f"distributed_executor_backend: {executor.text}"


@guard(
    "engine-number-out-of-range",
    "error",
    what="A number that vLLM's configuration does not take, though its argument does",
    silently="Ray takes it; the replica fails minutes later, when vLLM makes its configuration, and is started again "
    "and again",
    fix="write at least 1 token, sequence, adapter or partial prefill; leave `max_model_len` out for the model's own; "
    "`gpu_memory_utilization` is above 0 and at most 1",
    source="vllm 0.18 config/scheduler.py, lora.py, model.py, cache.py",
    holds={"vllm": ">=0.18,<0.19"},
)
def engine_number_out_of_range(view: View) -> Iterator[Found]:
    for engine in view.engines:
        for name, least in _AT_LEAST.items():
            given = engine.argument(name)
            if given is not None and given.number is not None and given.number < least:
                yield given, f"{name}: {given.value} is below {least}"
        share = engine.argument("gpu_memory_utilization")
        if share is not None and share.number is not None and not 0 < share.number <= 1:
            yield share, f"gpu_memory_utilization: {share.value}"
