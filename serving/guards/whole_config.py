"""What shows only in the whole of a config: keys that stand twice, and models of one application beside each other."""

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


@guard(
    "models-alike",
    "error",
    what="Two models of one `model_id` in an application, or an empty `llm_configs`",
    silently="the application does not build (`Duplicate models found`), and a RayService stays at its old one",
    fix="give each model a `model_id` of its own; more replicas of one are `num_replicas`",
    source="ray 2.55 to 2.60 llm/_internal/serve/core/ingress/builder.py: LLMServingArgs._validate_model_ids",
    holds={"ray": ">=2.55,<2.61"},
)
def models_alike(view: View) -> Iterator[Found]:
    for application in view.applications:
        listed = application.args.at("llm_configs")
        if not application.pd and listed is not None and listed.value == []:
            yield listed, "no model"
        seen: set[str] = set()
        for engine in application.engines if not application.pd else ():
            named = engine.node.at("model_loading_config", "model_id")
            if named is not None and named.text is not None:
                if named.text in seen:
                    yield named, f"{named.text} twice"
                seen.add(named.text)
