"""What stands in a bundle of `placement_group_config`: resources by name, and how much of each."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.serve_options import by_ray, of_engine, uses_gpus
from serving.guards.view import Engine, View

_OWN = ("CPU", "GPU")  # the fields of Ray's BundleConfig; any other key is a resource of the user's own


@guard(
    "placement-group-refused",
    "error",
    what="A `placement_group_config` with both kinds of bundles or none, or with an amount of a resource that is none",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write one of `bundle_per_worker: {CPU: 1, GPU: 1}` and `bundles: [...]`, with numbers above 0",
    source="ray 2.55, 2.60 llm/_internal/common/placement.py: PlacementGroupConfig, BundleConfig; "
    "util/placement_group.py: _validate_bundles",
    holds={"ray": ">=2.55,<2.61"},
)
def placement_group_refused(view: View) -> Iterator[Found]:
    for application in view.applications:
        for engine in application.engines:
            placed = engine.node.at("placement_group_config")
            if placed is None or not isinstance(placed.value, dict):
                continue
            given = [key for key in ("bundle_per_worker", "bundles") if placed.value.get(key) is not None]
            if len(given) != 1:
                yield placed, "bundle_per_worker and bundles" if given else "neither bundle_per_worker nor bundles"
            for bundle in engine.bundles:
                yield from _wrong_amounts(bundle)
            actor = of_engine(application, engine).option("ray_actor_options", "num_cpus")
            yield from _empty(view, engine, actor is not None and actor.number == 0)


def _wrong_amounts(bundle: Located) -> Iterator[Found]:
    """Of resources of the user's own. Those of CPU and GPU the schema knows: program_schemas.py."""
    for key, amount in bundle.items():
        if key in _OWN:
            continue
        if not isinstance(amount.value, int | float):
            yield amount, f"{key}: {amount.value} is no number"
        elif amount.value < 0:
            yield amount, f"{key}: {amount.value} is below 0"


def _empty(view: View, engine: Engine, actor_is_free: bool) -> Iterator[Found]:
    """Bundles of nothing: to the first the replica's own CPUs are added, to all of GPUs their accelerator type."""
    if engine.node.at("accelerator_type") is not None and uses_gpus(view, engine):
        return
    repeated = engine.node.at("placement_group_config", "bundle_per_worker") is not None and engine.gpus > 1
    for number, bundle in enumerate(engine.bundles):
        amounts = [amount.number for _, amount in bundle.items()]
        if all(amount == 0 for amount in amounts) and (number > 0 or repeated or actor_is_free):
            yield bundle, "a bundle of nothing"


@guard(
    "bundle-resource-misspelt",
    "error",
    what="`cpu`, `gpu` or the like in a bundle, where Ray has `CPU` and `GPU`",
    silently="Ray takes it for a resource of your own, which no node has: the engine is built for a CPU, or its "
    "replicas wait for placement for ever, without an error",
    fix="write `{CPU: 1, GPU: 1}`; Kubernetes' `amd.com/gpu` and `nvidia.com/gpu` are GPU to Ray",
    source="ray 2.55, 2.60 llm/_internal/common/placement.py: BundleConfig (extra=allow)",
    holds={"ray": ">=2.55,<2.61"},
)
def bundle_resource_misspelt(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        for bundle in engine.bundles:
            for key, amount in bundle.items():
                if (named := _slip(key)) is not None:
                    yield amount, f"{key}; do you mean {named}?"


def _slip(key: str) -> str | None:
    """CPU or GPU, where a key is one with other capitals, letters swapped or lost, or as others call it.

    TPU, NPU and HPU are near, and resources of Ray's own.
    """
    plain = key.upper().rpartition("/")[2].removeprefix("NUM_").removeprefix("NUM-").removesuffix("S")
    for known in _OWN:
        lost = {known[:at] + known[at + 1 :] for at in range(1, len(known))}
        if key != known and (sorted(plain) == sorted(known) or plain in lost):
            return known
    return None
