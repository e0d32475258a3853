"""Which nodes pods are let on, and what they have there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.sizes import GIB, privileged, quantity, ranks, sends_kv
from serving.guards.view import Engine, Pod, View

_TAINT = "amd.com/gpu"  # the one of DOKS and of OKE, on every node with AMD GPUs
_TAINTED = re.compile(r"^doks\.digitalocean\.com/|^BM\.GPU\.MI")
# What a container has without a volume on /dev/shm (containerd, pkg/oci: `size=65536k`).
_SHM_OF_THE_RUNTIME = 64 * 1024**2
# vLLM's queue from the engine to its ranks: 10 chunks of VLLM_MQ_MAX_CHUNK_BYTES_MB, 16 MiB (vllm 0.18,
# shm_broadcast.py, envs.py). RCCL and NCCL put their own buffers beside it.
_SHM_OF_RANKS = 160 * 1024**2


def _tolerates(pod: Pod) -> bool:
    listed = pod.node.at("tolerations")
    for one in listed.entries() if listed else ():
        key, effect = one.at("key"), one.at("effect")
        operator = one.at("operator")
        everything = (key is None or not key.value) and operator is not None and operator.value == "Exists"
        named = key is not None and key.value == _TAINT
        if (everything or named) and (effect is None or effect.value in (None, "", "NoSchedule")):
            return True
    return False


def _tainted(pod: Pod) -> bool:
    selector = pod.node.at("nodeSelector")
    pairs = list(selector.items()) if selector else []
    return any(_TAINTED.search(word) for name, value in pairs for word in (name, str(value.value)))


@guard(
    "gpu-taint-not-tolerated",
    "warning",
    what="A pod asks for AMD GPUs on DOKS or OKE and does not tolerate the taint of their nodes",
    silently="it stays Pending with `untolerated taint`, and the RayService or Deployment only says that it waits",
    fix="add `tolerations: [{key: amd.com/gpu, operator: Exists, effect: NoSchedule}]`",
    source="docs.digitalocean.com configure-multinode-gpus (taint amd.com/gpu:NoSchedule); oci-hpc-oke manifests",
)
def gpu_taint_not_tolerated(view: View) -> Iterator[Found]:
    for pod in view.pods:
        asked = pod.limit("amd.com/gpu")
        if asked is not None and asked.integer and _tainted(pod) and not _tolerates(pod):
            yield pod.node.at("tolerations") or asked, f"{pod.name} does not tolerate {_TAINT}"


@guard(
    "gpu-model-left-open",
    "note",
    what="Engines that exchange KV do not say on which nodes they run",
    silently="in a cluster with two kinds of GPUs prefill and decode may come on different ones, or off the fabric",
    fix="add a `nodeSelector` for the GPU model, such as `amd.com/gpu.product-name` or the node type's label",
    source="vllm 0.18 nixl_connector.py (the handshake compares attention backends); amd gpu-operator labels",
)
def gpu_model_left_open(view: View) -> Iterator[Found]:
    seen: set[int] = set()
    for engine in view.moving():
        pod = engine.pod
        said = engine.by_ray and engine.node.at("accelerator_type") is not None
        if pod is None or id(pod) in seen or said or not sends_kv(engine):
            continue
        seen.add(id(pod))
        chosen = pod.node.at("nodeSelector") or pod.node.at("affinity", "nodeAffinity") or pod.node.at("nodeName")
        if pod.gpus and not (chosen is not None and chosen.value):
            yield pod.node, f"{pod.name} has no nodeSelector"


@guard(
    "cpus-below-ranks",
    "warning",
    what="A pod has fewer CPUs than its engine takes",
    silently="under Ray the replica waits for CPUs forever; without Ray the ranks share them, and ITL grows",
    fix="raise the CPU limit: two for each rank and some for Serve's proxy, the tokenizer and the API server",
    source="ray 2.55 llm vllm_models.py placement_bundles; kuberay 1.6 pod.go (num-cpus from the CPU limit)",
)
def cpus_below_ranks(view: View) -> Iterator[Found]:
    seen: set[int] = set()
    for engine in view.engines:
        pod = engine.pod
        limit = pod.container.at("resources", "limits", "cpu") if pod else None
        if pod is None or id(pod) in seen or limit is None or not pod.gpus:
            continue
        given, needed = _cpus(pod, limit), _needed(engine)
        if given is not None and needed is not None and given < needed:
            seen.add(id(pod))
            yield limit, f"{given:g} CPUs for {needed:g}"


def _cpus(pod: Pod, limit: Located) -> float | None:
    """CPUs that Ray counts, or that the container has. `num-cpus` wins, and another word than a number is unknown."""
    said = pod.group.at("rayStartParams", "num-cpus") if pod.group else None
    return quantity(limit) if said is None else said.number


def _needed(engine: Engine) -> float | None:
    """CPUs of one replica: of its bundles, or without Ray a core for each rank, which polls its queue."""
    if not engine.by_ray:
        return min(ranks(engine), engine.pod.gpus if engine.pod else 0)  # of several nodes, those of this one
    bundles = engine.bundles
    each = [number for bundle in bundles if (cpu := bundle.at("CPU")) and (number := cpu.number) is not None]
    one_for_all = engine.node.at("placement_group_config", "bundle_per_worker") is not None
    strict = engine.node.at("placement_group_config", "strategy")
    if (
        not each or not ranks(engine) or strict is None or strict.value != "STRICT_PACK"
    ):  # else the bundles may be on several nodes
        return None
    return each[0] * engine.gpus if one_for_all else sum(each)


def _on_shm(pod: Pod) -> Located | None:
    """The volume that a container has on /dev/shm."""
    mounts, volumes = pod.container.at("volumeMounts"), pod.node.at("volumes")
    for mount in mounts.entries() if mounts else ():
        path, name = mount.at("mountPath"), mount.at("name")
        if path is not None and name is not None and str(path.value).rstrip("/") == "/dev/shm":  # noqa: S108
            of = [v for v in (volumes.entries() if volumes else ()) if (n := v.at("name")) and n.value == name.value]
            return of[0] if of else mount
    return None


@guard(
    "shared-memory-too-small",
    "warning",
    what="An engine of several ranks has a /dev/shm that is too small for them, or on a disk",
    silently="ranks that talk through it die with `Bus error` or `No space left on device` under load, or crawl",
    fix="mount `emptyDir: {medium: Memory, sizeLimit: 16Gi}` on /dev/shm",
    source="vllm 0.18 shm_broadcast.py, envs.py VLLM_MQ_MAX_CHUNK_BYTES_MB; containerd (64 MiB); llm-d (16Gi)",
)
def shared_memory_too_small(view: View) -> Iterator[Found]:
    for engine in view.engines:
        pod, processes = engine.pod, ranks(engine)
        if pod is None or processes < 2:
            continue
        volume, host_ipc = _on_shm(pod), pod.node.at("hostIPC")
        if volume is None:
            # KubeRay mounts one itself, as large as the memory limit (pod.go addEmptyDir); hostIPC has the node's.
            if not engine.by_ray and not (host_ipc is not None and host_ipc.value is True) and not privileged(pod):
                yield (
                    pod.container,
                    f"{processes} ranks and {_SHM_OF_THE_RUNTIME // 1024**2} MiB, the container runtime's",
                )
            continue
        directory, medium = volume.at("emptyDir"), volume.at("emptyDir", "medium")
        if directory is not None and (medium is None or medium.value != "Memory"):
            yield directory, "an emptyDir that is not in memory"
        size = quantity(volume.at("emptyDir", "sizeLimit"))
        if size is not None and size < _SHM_OF_RANKS:
            yield volume.at("emptyDir", "sizeLimit") or volume, f"{size / 1024**2:g} MiB for {processes} ranks"


@guard(
    "object-store-outside-memory",
    "warning",
    what="Ray's object store is larger than the memory that the pod has for it",
    silently="Ray puts it into files under /tmp where /dev/shm is too small, or the kernel ends the pod as it fills",
    fix="set `object-store-memory` in rayStartParams below /dev/shm's sizeLimit, and that below the memory limit",
    source="ray 2.55 _private/services.py determine_plasma_store_config; kubernetes docs, emptyDir (counts as memory)",
)
def object_store_outside_memory(view: View) -> Iterator[Found]:
    for pod in view.pods:
        if pod.group is None:
            continue
        said = pod.group.at("rayStartParams", "object-store-memory")
        store = said.integer if said is not None else None
        volume = _on_shm(pod)
        memory = quantity(pod.container.at("resources", "limits", "memory"))
        shared = quantity(volume.at("emptyDir", "sizeLimit")) if volume else None
        if said is None or store is None or pod.group.at("rayStartParams", "plasma-directory") is not None:
            continue
        for size, name in ((shared, "/dev/shm"), (memory, "the memory limit")):  # noqa: S108
            if size is not None and store > size:
                yield said, f"{store / GIB:.4g} GiB, {name} has {size / GIB:.4g} GiB"
                break
