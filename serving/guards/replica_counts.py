"""Numbers of replicas that Serve refuses."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.near_names import meant
from serving.guards.serve_options import deployments
from serving.guards.view import View

_AUTO = "auto"
_MOST_OF_AUTO = 100  # ray 2.55 serve/config.py: AutoscalingConfig.default; without `auto` it is 1


@guard(
    "replicas-no-number",
    "error",
    what="`num_replicas` that is neither a number nor `auto`; under `deployments` a number in quotes is none",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write a whole number without quotes, or `auto` and an `autoscaling_config`",
    source="ray 2.55, 2.60 serve/_private/config.py: DeploymentConfig; serve/schema.py: DeploymentSchema "
    '(`must be an int or "auto"`)',
    holds={"ray": ">=2.55,<2.61"},
)
def replicas_no_number(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        for place in (deployment.config, deployment.entry):
            count = place.at("num_replicas") if place is not None else None
            if count is None or count.value == _AUTO:
                continue
            exact = place is deployment.entry
            if count.text is not None and (exact or count.integer is None):
                yield count, f"{count.text!r}{meant(count.text, [_AUTO], 0.6)}"
            elif exact and isinstance(count.value, float):
                yield count, f"{count.value} is no whole number"


@guard(
    "replica-bounds-crossed",
    "error",
    what="`min_replicas` above `max_replicas`, or `initial_replicas` outside of them",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write all of them, with min_replicas <= initial_replicas <= max_replicas; left out, both bounds are 1, and "
    "the upper one is 100 beside `num_replicas: auto`",
    source="ray 2.55, 2.60 serve/config.py: AutoscalingConfig.replicas_settings_valid, default",
    holds={"ray": ">=2.55,<2.61"},
)
def replica_bounds_crossed(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        for place in (deployment.config, deployment.entry):
            settings = place.at("autoscaling_config") if place is not None else None
            if place is not None and settings is not None and isinstance(settings.value, dict):
                count = place.at("num_replicas")
                yield from _crossed(settings, _MOST_OF_AUTO if count is not None and count.value == _AUTO else 1)


def _crossed(settings: Located, most_by_default: int) -> Iterator[Found]:
    least, most, first = (settings.at(f"{which}_replicas") for which in ("min", "max", "initial"))
    fewest, largest = _integer(least, 1), _integer(most, most_by_default)
    if fewest is None or largest is None:
        return  # of another type, which refused-by-ray finds
    if fewest > largest:
        yield most or least or settings, f"min_replicas {fewest}, max_replicas {largest}"
    start = _integer(first, fewest)
    if first is not None and start is not None and fewest <= largest and not fewest <= start <= largest:
        yield first, f"initial_replicas {start}, and {fewest} to {largest} are allowed"


def _integer(given: Located | None, default: int) -> int | None:
    """As pydantic takes it, to which true is 1."""
    return default if given is None else int(given.value) if isinstance(given.value, bool) else given.integer


@guard(
    "aggregation-function-unknown",
    "error",
    what="An `aggregation_function` of autoscaling that Serve does not have",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write mean, max or min",
    source="ray 2.55, 2.60 serve/config.py: AutoscalingConfig.aggregation_function_valid",
    holds={"ray": ">=2.55,<2.61"},
)
def aggregation_function_unknown(view: View) -> Iterator[Found]:
    known = ("mean", "max", "min")
    for deployment in deployments(view):
        for place in (deployment.config, deployment.entry):
            given = place.at("autoscaling_config", "aggregation_function") if place is not None else None
            if given is not None and given.text is not None and given.text.lower() not in known:
                yield given, f"{given.text}{meant(given.text, known, 0.6)}"


@guard(
    "replicas-per-node-with-bundles",
    "error",
    what="`max_replicas_per_node` for an engine of Ray Serve LLM, which has a placement group",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="remove it: the GPUs of the bundles say how many replicas a node holds",
    source="ray 2.55, 2.60 serve/_private/config.py: ReplicaConfig "
    "(`not allowed when placement_group_bundles is provided`)",
    holds={"ray": ">=2.55,<2.61"},
)
def replicas_per_node_with_bundles(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        given = deployment.option("max_replicas_per_node")
        if deployment.engine is not None and given is not None and given.value is not None:
            yield given, f"max_replicas_per_node: {given.value}"
