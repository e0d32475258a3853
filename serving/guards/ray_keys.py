"""Names of keys: those that Ray refuses when it builds the application, and those that it drops without a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.near_names import meant, nearest
from serving.guards.program_schemas import keys_of
from serving.guards.serve_options import deployments
from serving.guards.view import View

# Keys of Ray 2.55 (program_schemas.json), and those that 2.56 to 2.60 have beside them, read by the annotations of the
# same classes. What is a key in one of these releases counts as known: guards of single keys know the versions.
_LLM_CONFIG = keys_of("pd", "LLMConfig") | {"accelerator_config"}
_BELOW = {
    "model_loading_config": keys_of("pd", "ModelLoadingConfig"),
    "placement_group_config": keys_of("pd", "PlacementGroupConfig"),
    "callback_config": keys_of("pd", "CallbackConfig"),
    "lora_config": keys_of("pd", "LoraConfig"),
}
_PD_ARGS, _ARGS = keys_of("pd"), keys_of("aggregated")
_LATER = {"backpressure_config", "max_surge_percent", "rolling_update_percentage"}
_DEPLOYMENT = (keys_of("deployment_config") | _LATER) - {"route_prefix"}  # which `serve.deployment` has and refuses
_SERVE = keys_of("serve") | {"controller_options", "tracing_config"}
_HTTP = keys_of("serve", "HTTPOptionsSchema")
_APPLICATION = keys_of("serve", "ServeApplicationSchema")
_ENTRY = keys_of("serve", "DeploymentSchema") | _LATER | {"placement_group_fallback_strategy"}
_ACTOR = keys_of("serve", "RayActorOptionsSchema")
_AUTOSCALING = keys_of("serve", "AutoscalingConfig")
_ROUTER = keys_of("serve", "RequestRouterConfig")


def _unknown(place: Located | None, known: Iterable[str]) -> Iterator[Found]:
    known = frozenset(known)
    for key, value in place.items() if place is not None else ():
        if key not in known:
            yield value, f"{key}{meant(key, known)}"


@guard(
    "llm-key-refused",
    "error",
    what="A key that LLMConfig, or the builder's arguments, do not have",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write the key as Ray has it; arguments of vLLM go under `engine_kwargs`, options of Serve under "
    "`deployment_config`",
    source="ray 2.55 to 2.60 llm/_internal/common/base_pydantic.py:16-19 (extra=forbid), core/configs/llm_config.py",
    holds={"ray": ">=2.55,<2.61"},
)
def llm_key_refused(view: View) -> Iterator[Found]:
    for application in view.applications:
        yield from _unknown(application.args, _PD_ARGS if application.pd else _ARGS)
        for engine in application.engines:
            yield from _unknown(engine.node, _LLM_CONFIG)
            for key, known in _BELOW.items():
                yield from _unknown(engine.node.at(key), known)


@guard(
    "deployment-option-refused",
    "error",
    what="An option that `serve.deployment` does not have",
    silently="the application does not build (`unexpected keyword argument`), and a RayService stays at its old one",
    fix="write the option as `serve.deployment` has it: num_replicas, max_ongoing_requests, autoscaling_config, ...",
    source="ray 2.55 to 2.60 serve/api.py deployment(); llm/_internal/serve/core/server/builder.py",
    holds={"ray": ">=2.55,<2.61"},
)
def deployment_option_refused(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        yield from _unknown(deployment.config, _DEPLOYMENT)
        if deployment.config is not None:
            yield from _unknown(deployment.config.at("ray_actor_options"), _ACTOR)


@guard(
    "serve-key-ignored",
    "error",
    what="A key of the Serve config that Serve does not have",
    silently="Serve drops it and deploys with the default: another port, one replica instead of four, no route",
    fix="write the key as Serve has it",
    source="ray 2.55 to 2.60 serve/schema.py: ServeDeploySchema, HTTPOptionsSchema, ServeApplicationSchema, "
    "DeploymentSchema and RayActorOptionsSchema ignore unknown keys",
    holds={"ray": ">=2.55,<2.61"},
)
def serve_key_ignored(view: View) -> Iterator[Found]:
    for config in view.serve:
        # Anyscale's services have keys of their own beside Serve's, and others keep anchors there.
        for key, value in config.items():
            if key not in _SERVE and (near := nearest(key, _SERVE)):
                yield value, f"{key}; do you mean {near}?"
        yield from _unknown(config.at("http_options"), _HTTP)
        listed = config.at("applications")
        for application in listed.entries() if listed else ():
            yield from _unknown(application, _APPLICATION)
            entries = application.at("deployments")
            for entry in entries.entries() if entries else ():
                yield from _unknown(entry, _ENTRY)
                yield from _unknown(entry.at("ray_actor_options"), _ACTOR)


@guard(
    "nested-option-ignored",
    "error",
    what="A key of `autoscaling_config` or `request_router_config` that Serve does not have",
    silently="Serve drops it: autoscaling keeps its default target, the router its default class",
    fix="write the key as Serve has it; the old `target_num_ongoing_requests_per_replica` is `target_ongoing_requests`",
    source="ray 2.55 to 2.60 serve/config.py: AutoscalingConfig and RequestRouterConfig ignore unknown keys",
    holds={"ray": ">=2.55,<2.61"},
)
def nested_option_ignored(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        for place in (deployment.config, deployment.entry):
            if place is not None:
                yield from _unknown(place.at("autoscaling_config"), _AUTOSCALING)
                yield from _unknown(place.at("request_router_config"), _ROUTER)
