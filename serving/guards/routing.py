"""Which replica a request goes to, and what decode does before the first one."""

from __future__ import annotations

import math
from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.scaling import autoscaling, scales
from serving.guards.serve_options import Deployment, deployments, is_true, of_engine
from serving.guards.view import View

_PREFIX_ROUTER = "PrefixCacheAffinityRouter"
_PREWARM = "_prewarm_prefill_decode"
# 60 retries, 5 s apart: ray 2.55 to 2.60 prefill_decode/pd_server.py.
_PREWARM_SECONDS = 300


def _prefix_router(deployment: Deployment) -> Located | None:
    """The router's class where it looks at prefixes and has a choice."""
    chosen = deployment.option("request_router_config", "request_router_class")
    if chosen is None or not chosen.text or _PREFIX_ROUTER not in chosen.text:
        return None
    engine, found = deployment.engine, autoscaling(deployment)
    many = engine is not None and engine.replicas != 1
    return chosen if many or (found is not None and scales(found[0])) else None


def _endless(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower().lstrip("+.") in ("inf", "infinity")
    return isinstance(value, float) and math.isinf(value)


@guard(
    "prefix-router-never-balances",
    "warning",
    what="The prefix-aware router without a limit on how uneven it may leave the load",
    silently="all requests with a common prefix, as one system prompt, go to one replica whatever its queue: its TTFT "
    "grows while the others are idle",
    fix="write `request_router_kwargs: {imbalanced_threshold: 10}`, a difference of queue lengths",
    source="ray 2.55 to 2.60 llm/_internal/serve/routing_policies/prefix_aware/prefix_aware_router.py:61,254; "
    "ray#59390",
    holds={"ray": ">=2.55,<2.61"},
)
def prefix_router_never_balances(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        if (chosen := _prefix_router(deployment)) is not None:
            limit = deployment.option("request_router_config", "request_router_kwargs", "imbalanced_threshold")
            if limit is None:
                yield chosen, "no imbalanced_threshold"
            elif _endless(limit.value):
                yield limit, f"imbalanced_threshold: {limit.value}"


@guard(
    "prefix-router-on-decode",
    "warning",
    what="The prefix-aware router in front of decode, and not of prefill",
    silently="decode replicas get requests by prefix, which unbalances them; prompts are computed on prefill, where a "
    "random replica misses its prefix cache",
    fix="move `request_router_config` to the `deployment_config` of `prefill_config`",
    source="ray 2.55 llm/_internal/serve/serving_patterns/prefill_decode/pd_server.py: each deployment has a router "
    "of its own",
)
def prefix_router_on_decode(view: View) -> Iterator[Found]:
    for application in view.applications:
        prefill, decode = application.engine("prefill"), application.engine("decode")
        if prefill is None or decode is None or prefill.replicas == 1:
            continue
        on_prefill = of_engine(application, prefill).option("request_router_config", "request_router_class")
        chosen = _prefix_router(of_engine(application, decode))
        if chosen is not None and on_prefill is None:
            yield chosen, f"{chosen.value} on decode"


@guard(
    "prewarm-not-on-decode",
    "error",
    what="`_prewarm_prefill_decode` on another engine than decode, which alone reads it",
    silently="no handshake is made ahead: the first request from each prefill replica pays for it in its TTFT",
    fix="write it under `experimental_configs` of `decode_config`",
    source="ray 2.55 to 2.60 llm/_internal/serve/serving_patterns/prefill_decode/pd_server.py: _maybe_prewarm of "
    "PDDecodeServer",
    holds={"ray": ">=2.55,<2.61"},
)
def prewarm_not_on_decode(view: View) -> Iterator[Found]:
    for application in view.applications:
        decode = application.engine("decode")
        if decode is not None and is_true(decode.node.at("experimental_configs", _PREWARM)):
            continue
        for engine in application.engines:
            given = engine.node.at("experimental_configs", _PREWARM)
            if engine.role != "decode" and is_true(given) and given is not None:
                yield given, f"on {engine.role}"


@guard(
    "prewarm-deadline",
    "note",
    what="Decode waits for prefill before it is ready, five minutes at most",
    silently="where prefill takes longer to load its weights than decode and five minutes, decode replicas fail and "
    "load theirs again, round and round",
    fix="keep it where prefill is ready in time; else remove it and send a few requests before real ones",
    source="ray 2.55 to 2.60 llm/_internal/serve/serving_patterns/prefill_decode/pd_server.py: 60 retries, 5 s apart",
    holds={"ray": ">=2.55,<2.61"},
)
def prewarm_deadline(view: View) -> Iterator[Found]:
    for application in view.applications:
        decode = application.engine("decode")
        given = decode.node.at("experimental_configs", _PREWARM) if decode else None
        connector = (decode.kv or {}).get("kv_connector") if decode else None
        peers = connector is not None and connector.value == "MoRIIOConnector"  # for which Ray makes none ahead
        if given is not None and given.value is True and not peers:
            yield given, f"{_PREWARM}, {_PREWARM_SECONDS} s"


@guard(
    "prewarm-misses-new-prefills",
    "warning",
    what="Decode makes its handshakes once, when it starts, and prefill autoscales",
    silently="prefill replicas that come later have no handshake made ahead, and the first request to each pays for "
    "it in its TTFT, just when load rises",
    fix="give prefill a fixed `num_replicas`, or do not count on `_prewarm_prefill_decode`",
    source="ray 2.55 to 2.60 llm/_internal/serve/serving_patterns/prefill_decode/pd_server.py: _maybe_prewarm",
    holds={"ray": ">=2.55,<2.61"},
)
def prewarm_misses_new_prefills(view: View) -> Iterator[Found]:
    for application in view.applications:
        prefill, decode = application.engine("prefill"), application.engine("decode")
        given = decode.node.at("experimental_configs", _PREWARM) if decode else None
        found = autoscaling(of_engine(application, prefill)) if prefill else None
        if given is not None and given.value is True and found is not None and scales(found[0]):
            yield given, "prefill autoscales"
