"""Keys of `experimental_configs`, which nothing checks."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.near_names import meant
from serving.guards.serve_options import by_ray, older
from serving.guards.view import View

# What code reads of experimental_configs (grep for `experimental_configs.get` in ray/llm), first in which release.
_EXPERIMENTAL = {
    "stream_batching_interval_ms": "2.55",
    "_prewarm_prefill_decode": "2.55",
    "NIXL_SIDE_CHANNEL_PORT_BASE": "2.55",
    "pd_tokenize_once": "2.57",
    "MORI_HANDSHAKE_PORT_BASE": "2.57",
    "MORI_NOTIFY_PORT_BASE": "2.57",
    "KV_EVENTS_PORT_BASE": "2.57",
    "KV_INDEXER_THREADS": "2.57",
    "KV_TOKEN_PORT_BASE": "2.58",
}
_INGRESS_REPLICAS = ("num_ingress_replicas", "num_router_replicas")


@guard(
    "experimental-key-ignored",
    "error",
    what="A key of `experimental_configs` that this Ray never reads",
    silently="nothing checks these keys: the default stays, as a side-channel port or a batching interval of 50 ms",
    fix="write the key as Ray reads it, upper case where it is: stream_batching_interval_ms, "
    "NIXL_SIDE_CHANNEL_PORT_BASE, _prewarm_prefill_decode",
    source="ray 2.55 to 2.60: every `experimental_configs.get` under llm/_internal/serve",
    holds={"ray": ">=2.55,<2.61"},
)
def experimental_key_ignored(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        given = engine.node.at("experimental_configs")
        own_code = engine.node.at("server_cls") or engine.node.at("callback_config", "callback_class")
        for key, value in given.items() if given is not None else ():
            if key in _INGRESS_REPLICAS:
                continue
            if key not in _EXPERIMENTAL:
                near = meant(key, _EXPERIMENTAL)
                if near or not own_code:  # a server or callback of one's own may read keys of its own
                    yield value, f"{key}{near}"
            elif older(view, "ray", _EXPERIMENTAL[key]):
                yield value, f"{key} came with Ray {_EXPERIMENTAL[key]}"


@guard(
    "ingress-replicas-ignored",
    "error",
    what="`num_ingress_replicas` under `experimental_configs`, which no code of Ray reads",
    silently="one single ingress process passes every token of every replica on, and TTFT and ITL grow with the load",
    fix="write `ingress_deployment_config: {num_replicas: N}` beside the LLMConfigs",
    source="ray 2.55 to 2.60: named in core/configs/llm_config.py, read nowhere; core/ingress/ingress.py "
    "DEFAULT_INGRESS_OPTIONS",
    holds={"ray": ">=2.55,<2.61"},
)
def ingress_replicas_ignored(view: View) -> Iterator[Found]:
    for application in view.applications:
        options = application.args.at("ingress_deployment_config")
        if options is not None and ("num_replicas" in options or "autoscaling_config" in options):
            continue  # then the key says it once more
        for engine in application.engines:
            if (given := engine.node.at("experimental_configs", "num_ingress_replicas")) is not None:
                yield given, f"num_ingress_replicas: {given.value}"


@guard(
    "router-replicas-refused",
    "error",
    what="`num_router_replicas` under `experimental_configs`, which LLMConfig refuses",
    silently="the application does not build, and the key that the message names instead is read by no code",
    fix="write `ingress_deployment_config: {num_replicas: N}` beside the LLMConfigs",
    source="ray 2.55 to 2.60 llm/_internal/serve/core/configs/llm_config.py: validate_experimental_configs",
    holds={"ray": ">=2.55,<2.61"},
)
def router_replicas_refused(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        if (given := engine.node.at("experimental_configs", "num_router_replicas")) is not None:
            yield given, f"num_router_replicas: {given.value}"
