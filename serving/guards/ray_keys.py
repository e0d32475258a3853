"""Names of keys: those that Ray refuses when it builds the application, and those that it drops without a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.near_names import meant
from serving.guards.serve_options import deployments
from serving.guards.view import View

# Fields of the pydantic models and parameters of serve.deployment, read from Ray 2.55, 2.56, 2.57, 2.58, 2.59 and 2.60
# by their annotations. What is a key in one of them counts as known: guards of single keys know the versions.
_LLM_CONFIG = frozenset(
    [
        "accelerator_config",
        "accelerator_type",
        "callback_config",
        "deployment_config",
        "engine_kwargs",
        "experimental_configs",
        "llm_engine",
        "log_engine_metrics",
        "lora_config",
        "model_loading_config",
        "placement_group_config",
        "runtime_env",
        "server_cls",
        "use_cpu",
    ]
)
_BELOW = {
    "model_loading_config": frozenset({"model_id", "model_source", "tokenizer_source"}),
    "placement_group_config": frozenset({"bundle_per_worker", "bundles", "strategy"}),
    "callback_config": frozenset({"callback_class", "callback_kwargs", "raise_error_on_callback"}),
    "lora_config": frozenset(
        {"download_timeout_s", "dynamic_lora_loading_path", "max_download_tries", "max_num_adapters_per_replica"}
    ),
}
_INGRESS = frozenset({"ingress_cls_config", "ingress_deployment_config"})
_PD_ARGS = _INGRESS | {"prefill_config", "decode_config", "proxy_cls_config", "proxy_deployment_config"}
_ARGS = _INGRESS | {"llm_configs"}
_DEPLOYMENT = frozenset(
    [
        "autoscaling_config",
        "backpressure_config",
        "deployment_actors",
        "gang_scheduling_config",
        "graceful_shutdown_timeout_s",
        "graceful_shutdown_wait_loop_s",
        "health_check_period_s",
        "health_check_timeout_s",
        "logging_config",
        "max_constructor_retry_count",
        "max_ongoing_requests",
        "max_queued_requests",
        "max_replicas_per_node",
        "max_surge_percent",
        "name",
        "num_replicas",
        "placement_group_bundle_label_selector",
        "placement_group_bundles",
        "placement_group_strategy",
        "ray_actor_options",
        "request_router_config",
        "rolling_update_percentage",
        "user_config",
        "version",
    ]
)
# Guards of their own speak of these: see placement.py.
_PLACEMENT = frozenset({"placement_group_bundles", "placement_group_strategy"})
# serve/schema.py and serve/config.py: models that ignore what they do not know.
_SERVE = frozenset(
    [
        "applications",
        "controller_options",
        "grpc_options",
        "http_options",
        "logging_config",
        "proxy_location",
        "target_capacity",
        "tracing_config",
    ]
)
_HTTP = frozenset(
    [
        "host",
        "keep_alive_timeout_s",
        "port",
        "request_timeout_s",
        "root_path",
        "ssl_ca_certs",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_keyfile_password",
    ]
)
_APPLICATION = frozenset(
    [
        "args",
        "autoscaling_policy",
        "deployments",
        "external_scaler_enabled",
        "host",
        "import_path",
        "logging_config",
        "name",
        "port",
        "route_prefix",
        "runtime_env",
    ]
)
_ENTRY = (_DEPLOYMENT | {"placement_group_fallback_strategy"}) - {"max_constructor_retry_count", "version"}
_ACTOR = frozenset(
    [
        "accelerator_type",
        "fallback_strategy",
        "label_selector",
        "memory",
        "num_cpus",
        "num_gpus",
        "resources",
        "runtime_env",
    ]
)
_AUTOSCALING = frozenset(
    [
        "aggregation_function",
        "downscale_delay_s",
        "downscale_smoothing_factor",
        "downscale_to_zero_delay_s",
        "downscaling_factor",
        "initial_replicas",
        "look_back_period_s",
        "max_replicas",
        "metrics_interval_s",
        "min_replicas",
        "policy",
        "smoothing_factor",
        "target_ongoing_requests",
        "upscale_delay_s",
        "upscale_smoothing_factor",
        "upscaling_factor",
    ]
)
_ROUTER = frozenset(
    [
        "backoff_multiplier",
        "initial_backoff_s",
        "max_backoff_s",
        "request_router_class",
        "request_router_kwargs",
        "request_routing_stats_period_s",
        "request_routing_stats_timeout_s",
    ]
)


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
        yield from (found for found in _unknown(config, _SERVE) if "do you mean" in found[1])
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
