"""GPUs that engines ask Ray for, and those that its cluster has."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.read import on_cpu
from serving.guards.sizes import ranks
from serving.guards.view import Engine, Pod, RayClusterView, View

_MOST = 2**31 - 1  # kuberay 1.6 raycluster_types.go: maxReplicas by default


def ray_gpus(pod: Pod) -> int | None:
    """GPUs that Ray counts in one pod of a cluster; None where that is no number.

    `num-gpus` wins, then the group's own `resources`, then limits (not requests) of resources whose names end in `gpu`
    (kuberay 1.6 pod.go, addWellKnownAcceleratorResources, updateRayStartParamsResources).
    """
    if pod.group is not None:
        own = pod.group.at("resources")
        listed = [value for name, value in (own.items() if own else ()) if name.lower().endswith("gpu")]
        said = listed[0] if listed else pod.group.at("rayStartParams", "num-gpus")
        if said is not None:
            return said.integer
    limits = pod.container.at("resources", "limits")
    named = dict(limits.items()) if limits else {}
    if any(name.startswith("nvidia.com/mig-") for name in named):  # Ray counts its slices as GPUs, and in its own way
        return None
    found = [value.integer for name, value in named.items() if name.endswith("gpu")]
    return None if None in found else sum(number or 0 for number in found)


def workers_asked(pod: Pod) -> int | None:
    """How many pods of its worker group KubeRay makes, hosts of one replica apart: `replicas` within its bounds."""
    if pod.group is None:
        return pod.replicas
    bounds = {"replicas": 0, "minReplicas": 0, "maxReplicas": _MOST}
    for name in bounds:
        said = pod.group.at(name)
        if said is not None and said.value is not None:
            if said.integer is None:
                return None
            bounds[name] = said.integer
    stopped = pod.group.at("suspend")
    if stopped is not None and stopped.value is True:
        return 0
    return max(bounds["minReplicas"], min(bounds["replicas"], bounds["maxReplicas"]))


def engines_of(view: View, cluster: RayClusterView) -> list[Engine]:
    """Engines that run in a cluster."""
    return view.once(_by_cluster).get(id(cluster), [])


def _by_cluster(view: View) -> dict[int, list[Engine]]:
    found: dict[int, list[Engine]] = {}
    for engine in view.engines:
        if engine.by_ray:
            found.setdefault(id(view.cluster_of(engine)), []).append(engine)
    return found


def _scaled(cluster: RayClusterView) -> bool:
    said = cluster.spec.at("enableInTreeAutoscaling")
    return said is not None and said.value is not False


def _gpus_of_cluster(cluster: RayClusterView) -> int | None:
    """All GPUs of the pods that are asked for; with the autoscaler those that it may ask for. None: not known."""
    total = ray_gpus(cluster.head) if cluster.head else 0
    if total is None:
        return None
    for pod in cluster.workers:
        hosts = pod.group.at("numOfHosts") if pod.group else None
        most = pod.group.at("maxReplicas") if pod.group else None
        count = (most.integer if most is not None else _MOST) if _scaled(cluster) else workers_asked(pod)
        each = ray_gpus(pod)
        times = 1 if hosts is None else hosts.integer
        if count is None or each is None or times is None:
            return None
        total += count * each * times
    return total


def _gpus_of_replica(engine: Engine) -> float:
    """What Ray has to find for one replica: its bundles, or one GPU a rank. Data parallelism makes more replicas."""
    devices = engine.gpus if ranks(engine) else 0
    if on_cpu(engine):
        return 0
    bundles = engine.bundles
    each = [number for bundle in bundles if (gpu := bundle.at("GPU")) and (number := gpu.number) is not None]
    if engine.node.at("placement_group_config", "bundle_per_worker") is not None:
        return each[0] * devices if each else 0
    return sum(each) if bundles else devices


def _fewest(engine: Engine) -> int:
    """Replicas that an engine has at least. Ray Serve LLM scales one without a number, from 1 on."""
    if engine.replicas is not None:
        return max(engine.replicas, 0)
    least = engine.node.at("deployment_config", "autoscaling_config", "min_replicas")
    return max(least.integer or 0, 0) if least is not None else 1


@guard(
    "not-enough-gpus",
    "error",
    what="Engines ask for more GPUs than their Ray cluster has",
    silently="some replicas wait for GPUs forever, and requests queue for the others: TTFT grows and nothing fails",
    fix="add worker replicas, or take fewer replicas of prefill or decode or a smaller tensor_parallel_size",
    source="ray 2.55 llm vllm_models.py placement_bundles; kuberay 1.6 pod.go, utils/util.go",
)
def not_enough_gpus(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        engines = engines_of(view, cluster)
        has = _gpus_of_cluster(cluster)
        needed = sum(_gpus_of_replica(engine) * min(_fewest(engine), _MOST) for engine in engines)
        if engines and has is not None and needed > has:
            words = " + ".join(f"{_fewest(e)} {e.role} x {_gpus_of_replica(e):g}" for e in engines)
            blamed = engines[-1].node
            yield blamed.at("deployment_config", "num_replicas") or blamed, f"{words} = {needed:g}, there are {has}"


@guard(
    "idle-gpus",
    "warning",
    what="There are more GPUs than the engines use",
    silently="they are paid for and do nothing, and a comparison by GPUs counts them",
    fix="raise replicas, tensor_parallel_size or data_parallel_size, or ask for fewer GPUs",
    source="vllm 0.18 config/parallel.py (one rank, one GPU); ray 2.55 llm vllm_models.py placement_bundles",
)
def idle_gpus(view: View) -> Iterator[Found]:
    for engine in view.engines:
        pod = engine.pod
        if engine.by_ray or pod is None or pod.kind != "engine" or _by_itself(engine):
            continue
        if 0 < ranks(engine) < pod.gpus:
            asked = next((v for n, v in pod.resources().items() if n.endswith("gpu")), pod.container)
            yield asked, f"{pod.gpus} GPUs for {ranks(engine)} ranks"
    for cluster in view.clusters:
        engines, has = engines_of(view, cluster), _gpus_of_cluster(cluster)
        if not engines or has is None or _scaled(cluster) or len(cluster.workers) != 1 or _others(view):
            continue
        # A part of an engine with data parallelism is a replica of Serve, and counted elsewhere.
        if any(e.replicas is None or not _gpus_of_replica(e) or e.gpus != ranks(e) for e in engines):
            continue
        needed = sum(_gpus_of_replica(engine) * _fewest(engine) for engine in engines)
        group = cluster.workers[0].group
        if needed < has and group is not None:
            yield group.at("replicas") or group, f"{has} GPUs for {needed:g} of {len(engines)} engines"


def _others(view: View) -> bool:
    """Whether Serve has applications besides those of Ray Serve LLM: they may have the other GPUs."""
    listed = [config.at("applications") for config in view.serve]
    return sum(len(list(apps.entries())) for apps in listed if apps) != len(view.applications)


def _by_itself(engine: Engine) -> bool:
    """Whether the command may start more than what one reads in it: over several nodes, or GPUs hidden from it."""
    several = (
        "config",
        "data_parallel_size_local",
        "data_parallel_hybrid_lb",
        "data_parallel_external_lb",
        "nnodes",
        "headless",
    )
    hidden = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    text = any(isinstance(v.value, str) and "$" in v.value for v in engine.arguments.values())
    return text or any(n in engine.arguments for n in several) or any(n in engine.environment for n in hidden)


@guard(
    "engine-larger-than-node",
    "error",
    what="One replica needs more GPUs on a node than any pod has",
    silently="Ray keeps the placement group pending, and the application says DEPLOYING until someone looks; without "
    "Ray vLLM ends at start, again and again",
    fix="ask for all GPUs of the node in the worker's limits, or lower tensor_parallel_size",
    source="ray 2.55 util/placement_group.py (STRICT_PACK); vllm 0.18 config/parallel.py (World size is larger)",
)
def engine_larger_than_node(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        pods = [*([cluster.head] if cluster.head else []), *cluster.workers]
        sizes = [ray_gpus(pod) for pod in pods]
        largest = max((size for size in sizes if size is not None), default=0)
        for engine in engines_of(view, cluster):
            strategy = engine.node.at("placement_group_config", "strategy")
            needed = _gpus_of_replica(engine)
            strict = strategy is not None and strategy.value == "STRICT_PACK" and engine.gpus == ranks(engine)
            if None not in sizes and strict and needed > largest:  # a group of data parallelism has no strategy
                yield engine.argument("tensor_parallel_size") or engine.node, f"{needed:g} GPUs, pods have {largest}"
    for engine in view.engines:
        pod, backend = engine.pod, engine.argument("distributed_executor_backend")
        if engine.by_ray or pod is None or not pod.gpus or "leaderWorkerTemplate" in pod.template.path:
            continue
        ray = backend is not None and backend.value == "ray"
        if not ray and not _by_itself(engine) and engine.gpus == ranks(engine) and engine.gpus > pod.gpus:
            yield engine.argument("tensor_parallel_size") or engine.node, f"{engine.gpus} GPUs, it has {pod.gpus}"
