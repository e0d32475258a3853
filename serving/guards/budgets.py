"""Whether deployments that are compared, or work together, have the same budgets."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.view import Engine, View

_BUDGETS = (
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_seqs",
    "gpu_memory_utilization",
    "block_size",
    "enable_prefix_caching",
)


def _differences(one: Engine, other: Engine) -> Iterator[tuple[Located, str]]:
    """Budgets that both say, and not the same. What is not said depends on the GPU and vLLM's release."""
    for name in _BUDGETS:
        mine, its = one.argument(name), other.argument(name)
        if mine is not None and its is not None and _value(mine) != _value(its):
            yield mine, f"{name}: {one.role} {mine.value}, {other.role} {its.value}"


def _value(value: Located) -> object:
    return value.number if value.number is not None else str(value.value).lower()


@guard(
    "unequal-budgets",
    "warning",
    what="Prefill or decode has other budgets than the aggregated engines that it is compared with",
    silently="the comparison measures the budgets as well: a larger batch or prefix cache looks like a gain of PD",
    fix="give all engines the same values, and change one thing at a time",
    source="the reference post's configuration (32768 and 4096 batched tokens); serving/engine.py budget_differences",
)
def unequal_budgets(view: View) -> Iterator[Found]:
    for name, roles in view.unequal_budgets.items():
        for engine in view.engines:
            if engine.role in roles and engine.role != "aggregated":
                said = engine.argument(name) or engine.node
                yield said, f"{name}: {engine.role} {roles[engine.role]}, aggregated {roles.get('aggregated')}"
    baselines: dict[str, list[Engine]] = {}
    for engine in view.engines:
        if engine.role == "aggregated" and engine.model:
            baselines.setdefault(str(engine.model.value), []).append(engine)
    for engine in view.engines:
        if baselines and engine.role != "aggregated" and engine.model:
            for baseline in baselines.get(str(engine.model.value), ()):
                yield from _differences(engine, baseline)


@guard(
    "prefill-and-decode-differ",
    "note",
    what="Prefill and decode have different budgets",
    silently="each may be right for its role, but no aggregated engine has both: a comparison measures that too",
    fix="keep it if it was measured, and say so beside the result",
    source="the reference post's configuration (32768 and 4096 batched tokens)",
)
def prefill_and_decode_differ(view: View) -> Iterator[Found]:
    for prefill, decode in view.pairs():
        yield from ((at, detail) for at, detail in _differences(decode, prefill) if "block_size" not in detail)


@guard(
    "dummy-weights",
    "note",
    what="The engines make their weights up (`load_format: dummy`)",
    silently="every answer is nonsense, and experts of a mixture are chosen as no real model would choose them",
    fix="leave load_format away to serve the model; keep it to measure, and say so beside the result",
    source="vllm 0.18 model_executor/model_loader/dummy_loader.py; the reference post measured so",
)
def dummy_weights(view: View) -> Iterator[Found]:
    if view.platform == "cpu":
        return
    for engine in view.engines:
        said = engine.argument("load_format")
        if said is not None and said.value == "dummy":
            yield said, "load_format: dummy"
            return  # once, and not for every role
