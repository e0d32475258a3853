"""What shows only in the whole of a config: keys that stand twice, and two models in one application."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.view import View


@guard(
    "key-twice",
    "error",
    what="A key stands twice in one object",
    silently="the later one wins and the earlier one is gone, with everything below it",
    fix="keep one of them",
    source="PyYAML's safe_load, with which Ray reads a Serve config, takes the last and says nothing",
)
def key_twice(view: View) -> Iterator[Found]:
    for twice in view.duplicates:
        yield twice.place, twice.key


@guard(
    "model-ids-differ",
    "error",
    what="Prefill and decode have different `model_id`s",
    silently="the application does not build (`P/D model id mismatch`), and a RayService stays at its old one",
    fix="give both the same `model_id`; where the weights lie is `model_source`",
    source="ray 2.55 to 2.60 llm/_internal/serve/serving_patterns/prefill_decode/builder.py: _validate_model_ids",
)
def model_ids_differ(view: View) -> Iterator[Found]:
    for application in view.applications:
        prefill, decode = application.engine("prefill"), application.engine("decode")
        if not (application.pd and prefill and decode):
            continue
        first = prefill.node.at("model_loading_config", "model_id")
        second = decode.node.at("model_loading_config", "model_id")
        if first is not None and second is not None and first.value != second.value:
            yield second, f"prefill {first.value}, decode {second.value}"
