"""`request_router_config`: the class of a request router, and what it is given."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.near_names import meant
from serving.guards.read_serve import builder as with_colon
from serving.guards.serve_options import deployments, older
from serving.guards.view import View

_PREFIX = "PrefixCacheAffinityRouter"
_TWO_CHOICES = "PowerOfTwoChoicesRequestRouter"
_MODULES = {
    "ray.serve.llm.request_router": _PREFIX,
    "ray.llm._internal.serve.routing_policies.prefix_aware.prefix_aware_router": _PREFIX,
    "ray.serve._private.request_router": _TWO_CHOICES,
    "ray.serve._private.request_router.pow_2_router": _TWO_CHOICES,
    "ray.serve.experimental.capacity_queue_router": "CapacityQueueRouter",
}
_KNOWN = {f"{module}:{name}" for module, name in _MODULES.items()}
_ALL_BUT_EQUAL = 0.9
# Parameters of PrefixCacheAffinityRouter.initialize_state; those that it compares with numbers at every request.
_THRESHOLDS = ("imbalanced_threshold", "match_rate_threshold")
_OF_PREFIX = (
    *_THRESHOLDS,
    *("do_eviction", "eviction_threshold_chars", "eviction_target_chars", "eviction_interval_secs", "tree_actor"),
)


def _configs(view: View) -> Iterator[Located]:
    for deployment in deployments(view):
        for place in (deployment.config, deployment.entry):
            given = place.at("request_router_config") if place is not None else None
            if given is not None and isinstance(given.value, dict):
                yield given


@guard(
    "router-class-unknown",
    "error",
    what="A `request_router_class` that cannot be imported, or all but the name of one of Ray's",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write `ray.serve.llm.request_router.PrefixCacheAffinityRouter`, or leave it out for the power of two choices",
    source="ray 2.55, 2.60 serve/config.py: RequestRouterConfig imports it; serve/llm/request_router.py",
    holds={"ray": ">=2.55,<2.61"},
)
def router_class_unknown(view: View) -> Iterator[Found]:
    for config in _configs(view):
        given = config.at("request_router_class")
        if given is None or not given.text:
            continue  # null is refused-by-ray's, and an empty text is the default
        path = with_colon(given)
        module, _, name = path.partition(":")
        if not module or not name or ":" in name:
            near = [known for known in sorted(_KNOWN) if known.endswith(f":{given.text}")]
            yield given, f"{given.text} is no `module.Class`" + (f"; do you mean {near[-1]}?" if near else "")
        elif path not in _KNOWN:
            near = meant(path, _KNOWN, _ALL_BUT_EQUAL)
            if near or (module in _MODULES and older(view, "ray", "2.56")):
                yield given, f"{given.text}{near}"


@guard(
    "router-argument-refused",
    "error",
    what="An argument that the prefix-aware router does not have, or a threshold that is no number",
    silently="nothing looks at it before there are requests: whoever sends them to this deployment fails to make its "
    "router, or to choose a replica",
    fix="write imbalanced_threshold, match_rate_threshold, do_eviction, eviction_threshold_chars, "
    "eviction_target_chars or eviction_interval_secs, with numbers",
    source="ray 2.55, 2.60 llm/_internal/serve/routing_policies/prefix_aware/prefix_aware_router.py: initialize_state; "
    "serve/_private/router.py: request_router",
    holds={"ray": ">=2.55,<2.61"},
)
def router_argument_refused(view: View) -> Iterator[Found]:
    for config in _configs(view):
        arguments = config.at("request_router_kwargs")
        if arguments is None or _class(config) != _PREFIX:
            continue
        for name, value in arguments.items():
            if name not in _OF_PREFIX:
                yield value, f"{name}{meant(name, _OF_PREFIX)}"
            elif name in _THRESHOLDS and not isinstance(value.value, int | float):
                yield value, f"{name}: {value.value} is no number"


@guard(
    "router-argument-ignored",
    "error",
    what="`request_router_kwargs` without the class of a router that reads them",
    silently="Serve's own router, the power of two choices, takes any argument and reads none",
    fix="add `request_router_class: ray.serve.llm.request_router.PrefixCacheAffinityRouter`, or remove them",
    source="ray 2.55, 2.60 serve/_private/request_router/request_router.py: RequestRouter.initialize_state",
    holds={"ray": ">=2.55,<2.61"},
)
def router_argument_ignored(view: View) -> Iterator[Found]:
    for config in _configs(view):
        arguments = config.at("request_router_kwargs")
        if arguments is not None and arguments.value and _class(config) == _TWO_CHOICES:
            yield arguments, f"given to {_TWO_CHOICES}"


def _class(config: Located) -> str | None:
    """The name of a class of Ray's; None of another."""
    given = config.at("request_router_class")
    if given is None or given.value == "":
        return _TWO_CHOICES
    path = with_colon(given)
    return path.partition(":")[2] if path in _KNOWN else None
