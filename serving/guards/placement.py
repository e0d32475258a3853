"""Placement groups: bundles, ranks and nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from serving.amounts import amount
from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.serve_options import by_ray, deployments, uses_gpus
from serving.guards.view import Engine, Pod, View

_IN_SERVE = ("placement_group_bundles", "placement_group_strategy")


def _strategy(engine: Engine) -> tuple[str, Located | None]:
    """Ray Serve LLM's own is PACK."""
    given = engine.node.at("placement_group_config", "strategy")
    return ("PACK", None) if given is None or given.text is None else (given.text, given)


def _number(bundle: Located, resource: str) -> float:
    given = bundle.at(resource)
    return 0.0 if given is None or given.number is None else given.number


def _ranks(engine: Engine) -> int:
    """0 where the sizes are none."""
    sizes = (engine.integer("tensor_parallel_size", 1), engine.integer("pipeline_parallel_size", 1))
    return engine.gpus if min(sizes) > 0 and max(sizes) < 10_000 else 0


def _parallel(engine: Engine) -> bool:
    """Replicas of data parallelism are placed as a gang, by other rules."""
    return engine.integer("data_parallel_size", 1) > 1


def _largest(view: View, engine: Engine, resource: str) -> float | None:
    """What the largest node that an engine can be on has of CPU or GPU in Ray's eyes; None: not known of every one."""
    cluster = view.cluster_of(engine)
    if cluster is None:
        return float(view.node.gpus) if resource == "GPU" and view.node.gpus and not view.clusters else None
    pods = [pod for pod in (*cluster.workers, cluster.head) if pod is not None]
    # Where no pod asks for GPUs Ray counts those that it sees, and that is not known here.
    known = [_of_pod(pod, resource) for pod in pods if pod.gpus]
    if not known:
        return None
    return None if any(one is None for one in known) else max(one for one in known if one is not None)


def _of_pod(pod: Pod, resource: str) -> float | None:
    """As KubeRay counts: `rayStartParams`, else the container's limits."""
    if pod.group is None or pod.group.at("resources") is not None:
        return None
    name = {"CPU": "num-cpus", "GPU": "num-gpus"}[resource]
    if (started := pod.group.at("rayStartParams", name)) is not None:
        return started.number
    if resource == "GPU":
        return float(pod.gpus)
    limit = pod.limit("cpu")
    try:
        return None if limit is None else float(math.ceil(amount(str(limit.value))))
    except (ValueError, ArithmeticError):
        return None


@guard(
    "gpus-beside-bundles",
    "error",
    what="`num_gpus` for the replica actor of an engine whose placement group already has its GPUs",
    silently="every replica asks for GPUs on top of its ranks': it waits for a node that does not exist, or lets them "
    "idle",
    fix="remove `num_gpus`; the bundles of `placement_group_config` are what the engine gets",
    source="ray 2.55 to 2.60 llm/_internal/serve/core/server/llm_server.py: get_deployment_options adds it to the "
    "first bundle; ray#59064, vllm#29688",
)
def gpus_beside_bundles(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        asked = deployment.option("ray_actor_options", "num_gpus")
        engine = deployment.engine
        if engine is not None and asked is not None and (asked.number or 0) > 0 and uses_gpus(view, engine):
            yield asked, f"num_gpus: {asked.value}, and {engine.gpus} ranks with a bundle each"


@guard(
    "bundles-in-deployment-config",
    "error",
    what="Serve's placement group options under `deployment_config`, where Ray Serve LLM refuses them",
    silently="LLMConfig takes it, and only the application's build fails: a RayService stays at its old one",
    fix="write `placement_group_config: {bundles: [...], strategy: ...}` in the LLMConfig",
    source="ray 2.55 llm/_internal/serve/core/server/llm_server.py:703",
)
def bundles_in_deployment_config(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        for key in _IN_SERVE:
            if (given := engine.node.at("deployment_config", key)) is not None:
                yield given, key


@guard(
    "fewer-bundles-than-ranks",
    "error",
    what="Fewer GPUs in the placement group than tensor parallel x pipeline parallel ranks",
    silently="the group is placed and GPUs are held, and the engine fails in the replica, again and again",
    fix="write `bundle_per_worker: {CPU: 1, GPU: 1}`, which Ray repeats for every rank, or one bundle a rank",
    source="vllm 0.18 v1/executor/ray_utils.py: initialize_ray_cluster",
)
def fewer_bundles_than_ranks(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        listed = engine.node.at("placement_group_config", "bundles")
        gpus = sum(_number(bundle, "GPU") for bundle in engine.bundles)
        if listed is None or not uses_gpus(view, engine) or any(0 < _number(b, "GPU") < 1 for b in engine.bundles):
            continue
        if listed.value == [] or 0 < gpus < _ranks(engine):
            yield listed, f"{gpus:g} GPUs for {_ranks(engine)} ranks"


@guard(
    "more-bundles-than-ranks",
    "warning",
    what="More bundles with a GPU in the placement group than the engine has ranks",
    silently="the first ones get the ranks, and the other GPUs are held by the replica and do nothing",
    fix="raise `tensor_parallel_size`, or write `bundle_per_worker: {CPU: 1, GPU: 1}`, which Ray repeats a rank",
    source="vllm 0.18 v1/executor/ray_executor.py:199-204",
)
def more_bundles_than_ranks(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        listed = engine.node.at("placement_group_config", "bundles")
        if listed is None or not uses_gpus(view, engine) or _parallel(engine):
            continue
        count = sum(_number(bundle, "GPU") > 0 for bundle in engine.bundles)
        if count > _ranks(engine) > 0:
            yield listed, f"{count} bundles with a GPU for {_ranks(engine)} ranks"


@guard(
    "several-gpus-in-a-bundle",
    "error",
    what="A bundle with more than one GPU, where vLLM wants one bundle a rank",
    silently="the group is placed and GPUs are held, and the engine fails in the replica, again and again",
    fix="write `bundle_per_worker: {CPU: 1, GPU: 1}`, which Ray repeats for every rank",
    source="vllm 0.18 v1/executor/ray_utils.py:425-430 (`cannot have more than 1`)",
    holds={"vllm": ">=0.18,<0.19"},
)
def several_gpus_in_a_bundle(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        for bundle in engine.bundles:
            asked = bundle.at("GPU")
            if asked is not None and _number(bundle, "GPU") > 1 and uses_gpus(view, engine):
                yield asked, f"GPU: {asked.value}"


@guard(
    "placement-never-fits",
    "error",
    what="No node is large enough for a bundle, or for a group that may not leave one node",
    silently="replicas wait for placement for ever, deployments stay UPDATING, and no log has an error",
    fix="ask for no more than a node has; beside its bundles a replica takes the CPUs of its actor, one by default",
    source="ray 2.55 llm/_internal/serve/core/server/llm_server.py: _merge_replica_actor_and_child_actor_bundles; "
    "KubeRay common/pod.go: what a node has is `num-cpus` and `num-gpus`, else the container's limits",
)
def placement_never_fits(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        engine = deployment.engine
        if engine is None or not uses_gpus(view, engine) or _ranks(engine) == 0:
            continue
        strategy, said = _strategy(engine)
        asked = engine.bundles
        given = engine.node.at("placement_group_config")
        per_worker = given is not None and given.at("bundle_per_worker") is not None
        for resource in ("GPU", "CPU"):
            has = _largest(view, engine, resource)
            if has is None or given is None or not asked:
                continue
            actor = deployment.option("ray_actor_options", "num_cpus")
            own = (1.0 if actor is None or actor.number is None else actor.number) if resource == "CPU" else 0.0
            amounts = [_number(bundle, resource) for bundle in asked]
            single = max(amounts[0] + own, *amounts)
            total = (sum(amounts) * (_ranks(engine) if per_worker else 1)) + own
            if single > has:
                yield given, f"a bundle of {single:g} {resource}, and the largest node has {has:g}"
            elif strategy == "STRICT_PACK" and total > has and not _parallel(engine):
                yield said or given, f"STRICT_PACK of {total:g} {resource}, and the largest node has {has:g}"


@guard(
    "tensor-parallel-over-nodes",
    "warning",
    what="Ranks of one tensor parallel group on several nodes",
    silently="every layer's all-reduce crosses the network instead of the links between the GPUs of a node: "
    "TTFT and ITL are several times longer, and nothing fails",
    fix="use `strategy: STRICT_PACK`, and keep `tensor_parallel_size` within a node",
    source="vllm 0.18 v1/executor/ray_utils.py:250-262 (a log line of the replica); ray 2.55 "
    "llm/_internal/common/placement.py",
)
def tensor_parallel_over_nodes(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        size = engine.integer("tensor_parallel_size", 1)
        strategy, said = _strategy(engine)
        if size < 2 or _parallel(engine) or not uses_gpus(view, engine):
            continue
        has = _largest(view, engine, "GPU")
        if said is not None and strategy in ("SPREAD", "STRICT_SPREAD"):
            yield said, f"{strategy} with tensor_parallel_size {size}"
        elif strategy == "PACK" and has is not None and 0 < has < size:
            yield (
                engine.argument("tensor_parallel_size") or engine.node,
                f"tensor_parallel_size {size}, and the largest node has {has:g} GPUs",
            )


@guard(
    "pack-may-leave-the-node",
    "note",
    what="Tensor parallel ranks placed with PACK, which prefers one node and does not insist",
    silently="where no node has enough free GPUs, as beside smaller replicas, a replica is split over nodes, and its "
    "all-reduces cross the network",
    fix="write `placement_group_config: {bundle_per_worker: {CPU: 1, GPU: 1}, strategy: STRICT_PACK}`",
    source="ray 2.55 llm/_internal/serve/engines/vllm/vllm_models.py: placement_strategy (PACK); vllm 0.18 "
    "v1/executor/ray_utils.py:250-262",
)
def pack_may_leave_the_node(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        size, has = engine.integer("tensor_parallel_size", 1), _largest(view, engine, "GPU")
        strategy, said = _strategy(engine)
        if size < 2 or strategy != "PACK" or _parallel(engine) or not uses_gpus(view, engine):
            continue
        if (has is not None and has < size) or _one_node(view):
            continue  # tensor-parallel-over-nodes says it, or there is no other node
        yield said or engine.argument("tensor_parallel_size") or engine.node, f"PACK of {size} ranks"


def _one_node(view: View) -> bool:
    counts = [
        largest.integer if pod.group is not None and (largest := pod.group.at("maxReplicas")) else pod.replicas
        for cluster in view.clusters
        for pod in cluster.workers
    ]
    return bool(counts) and None not in counts and sum(count or 0 for count in counts) <= 1
