"""Which GPUs a process sees, and which variables reach Ray's workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.transfer import literal
from serving.guards.view import Engine, Pod, View

_HIP, _CUDA, _ROCR = "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"
# vLLM copies VLLM_, LMCACHE_, NCCL_, UCX_, HF_ and HUGGING_FACE_ (0.18 and 0.29, ray/ray_env.py:36-43).
_NOT_COPIED = ("NIXL_", "HSA_", "HIP_", "MORI_", "RCCL_", "ROCSHMEM_")
_MORE_PREFIXES, _MORE = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY", "VLLM_RAY_EXTRA_ENV_VARS_TO_COPY"


def _ray_environments(view: View) -> Iterator[tuple[Mapping[str, Located], Pod | None]]:
    """Of the pods of Ray clusters, and of engines that Ray starts, with the pod whose it is."""
    for cluster in view.clusters:
        for pod in [*([cluster.head] if cluster.head else []), *cluster.workers]:
            yield pod.environment, pod
    for engine in view.engines:
        if engine.by_ray:
            yield engine.environment, engine.pod


@guard(
    "rocr-visible-devices",
    "error",
    what=f"{_ROCR} for a process of Ray, without {_HIP}",
    silently="Ray refuses to count GPUs: its pods or its replicas fail to start, and the Serve config looks right",
    fix=f"remove it: the device plugin and Ray hand out GPUs; {_HIP} where it must be",
    source="ray 2.55 and 2.60 _private/accelerators/amd_gpu.py get_visible_accelerator_ids_env_var",
)
def rocr_visible_devices(view: View) -> Iterator[Found]:
    for environment, _ in _ray_environments(view):
        if _ROCR in environment and _HIP not in environment and view.platform == "rocm":
            yield environment[_ROCR], _ROCR


@guard(
    "gpu-visibility-typed",
    "warning",
    what="GPUs written into the environment of what Ray starts",
    silently="all replicas of a node see the same GPUs, or Ray counts fewer than the pod has",
    fix="remove it: Ray sets it for each rank",
    source="ray 2.55 _private/accelerators/amd_gpu.py; vllm 0.18 platforms/rocm.py:364-367; ray#52701",
)
def gpu_visibility_typed(view: View) -> Iterator[Found]:
    for environment, pod in _ray_environments(view):
        for name in (_HIP, _CUDA):
            entry = environment.get(name)
            value = entry.at("value") if entry is not None and isinstance(entry.value, dict) else entry
            text = str(value.value).strip() if value is not None else ""
            # Ray hands out what its pod sees, and that is all of them.
            every = pod is not None and name in pod.environment and len(set(text.split(","))) >= pod.gpus > 0
            # Empty or -1: a head that is to see no GPU. With NOSET someone else hands them out.
            if (
                entry is not None
                and not every
                and text[:1].isdecimal()
                and f"RAY_EXPERIMENTAL_NOSET_{name}" not in environment
            ):
                yield entry, f"{name}={text}"


@guard(
    "gpu-visibility-differs",
    "error",
    what=f"{_HIP} and {_CUDA} name different GPUs",
    silently="vLLM and Ray 2.55 refuse to start; Ray 2.60 takes the first alone",
    fix=f"set {_HIP} only",
    source="vllm 0.18 platforms/rocm.py:68-86; ray 2.55 _private/accelerators/amd_gpu.py",
)
def gpu_visibility_differs(view: View) -> Iterator[Found]:
    for engine in view.engines:
        one, other = literal(engine, _HIP), literal(engine, _CUDA)
        if view.platform == "rocm" and one and other and one != other:
            yield engine.environment[_CUDA], f"{_HIP}={one}, {_CUDA}={other}"


@guard(
    "variables-stay-with-the-driver",
    "warning",
    what="Variables of the pod that runs `vllm serve` which vLLM does not copy to Ray's workers in other pods",
    silently="ranks of the other pods run with the defaults, and so differ from those of the first",
    fix=f"give the worker pods the same variables, or name the prefixes in {_MORE_PREFIXES}",
    source="vllm 0.18 and 0.29 ray/ray_env.py:36-43",
)
def variables_stay_with_the_driver(view: View) -> Iterator[Found]:
    workers = [pod for pod in view.pods if pod.kind == "other" and _starts_ray(pod)]
    for engine in view.engines:
        executor = engine.argument("distributed_executor_backend")
        if engine.by_ray or executor is None or executor.value != "ray" or not workers:
            continue
        more = {name for key in (_MORE_PREFIXES, _MORE) for name in (literal(engine, key) or "").split(",") if name}
        for name, at in engine.environment.items():
            copied = any(name.startswith(prefix.strip()) for prefix in more)
            # Which GPUs a process sees is Ray's to say.
            if not name.startswith(_NOT_COPIED) or copied or name == _HIP or _hidden(engine):
                continue
            if not all(name in pod.environment or pod.container.at("envFrom") is not None for pod in workers):
                yield at, f"{name} is not set in {', '.join(p.name for p in workers if name not in p.environment)}"


def _starts_ray(pod: Pod) -> bool:
    """Whether a pod joins a Ray cluster by its command."""
    words = [str(at.value) for key in ("command", "args") if (at := pod.container.at(key)) is not None]
    return any("ray start" in word or "--ray_address" in word or "'ray', 'start'" in word for word in words)


def _hidden(engine: Engine) -> bool:
    return literal(engine, _MORE_PREFIXES) is None and _MORE_PREFIXES in engine.environment
