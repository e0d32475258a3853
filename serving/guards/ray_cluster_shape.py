"""How a Ray cluster on Kubernetes is put together: its head, its versions, how it is replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.ray_gpus import engines_of, ray_gpus, workers_asked
from serving.guards.view import Pod, View

_WHOLE_NODE = 8  # GPUs: nodes that are rented one by one, and of which there are no spare ones
_RAY_IMAGE = re.compile(r"(?:^|/)ray(?:-llm|-ml)?:v?(\d+\.\d+\.\d+)")
_DOUBLE = ("NewCluster", "NewClusterWithIncrementalUpgrade")


@guard(
    "upgrade-doubles-gpus",
    "warning",
    what="A RayService of whole GPU nodes is upgraded by a second cluster beside the first",
    silently="an edit of rayClusterConfig asks for as many GPUs again, and on a full pool hangs Pending forever",
    fix="write `upgradeStrategy: {type: None}`, and replace the RayService where the cluster itself has to change",
    source="kuberay 1.6 rayservice_controller.go isZeroDowntimeUpgradeEnabled; kuberay#1476, #4239",
)
def upgrade_doubles_gpus(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        if cluster.service is None or not any((ray_gpus(pod) or 0) >= _WHOLE_NODE for pod in cluster.workers):
            continue
        kind = cluster.service.at("upgradeStrategy", "type")
        surge = cluster.service.at("upgradeStrategy", "clusterUpgradeOptions", "maxSurgePercent")
        if kind is None or kind.value is None:
            yield kind or cluster.service, "no upgradeStrategy is NewCluster"
        elif kind.value in _DOUBLE and (surge is None or surge.integer is None or surge.integer >= 100):
            yield kind, f"{kind.value}"


@guard(
    "engines-on-head",
    "warning",
    what="Ray's head counts GPUs, beside workers that have them",
    silently="a replica is placed on the head: it shares memory and CPUs with the GCS, and an OOM there ends them all",
    fix='run the head on a CPU node, or write `num-gpus: "0"` and `num-cpus: "0"` in its rayStartParams',
    source="kuberay 1.6 pod.go addWellKnownAcceleratorResources; ray docs, head node configuration of large clusters",
)
def engines_on_head(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        head = cluster.head
        if head is None or not ray_gpus(head) or not any(ray_gpus(pod) for pod in cluster.workers):
            continue
        asked = next((v for n, v in head.resources().items() if n.endswith("gpu")), None)
        yield asked or head.node, f"the head has {ray_gpus(head)} GPUs"


@guard(
    "replicas-on-head",
    "note",
    what="Ray's head counts its CPUs as free for replicas",
    silently="ingress replicas, and engines of a CPU, run beside the GCS and Serve's controller, and slow both down",
    fix='write `num-cpus: "0"` in the head\'s rayStartParams',
    source="kuberay 1.6 pod.go generateRayStartCommand (num-cpus from the CPU limit)",
)
def replicas_on_head(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        head = cluster.head
        if head is None or head.group is None or not cluster.workers or not engines_of(view, cluster):
            continue
        own = head.group.at("resources")
        listed = [value for name, value in (own.items() if own else ()) if name.lower() == "cpu"]
        said = listed[0] if listed else head.group.at("rayStartParams", "num-cpus")
        if said is None or (said.number is not None and said.number > 0):
            yield said or head.group, f"num-cpus: {said.value}" if said else "no num-cpus: its CPU limit"


@guard(
    "worker-replicas-clamped",
    "error",
    what="A worker group's `replicas` is not what its `minReplicas` and `maxReplicas` allow",
    silently="KubeRay takes the nearest number that they allow, and writes nothing of it anywhere",
    fix="write the same number three times where the pool has a fixed number of nodes",
    source="kuberay 1.6 utils/util.go GetWorkerGroupDesiredReplicas",
)
def worker_replicas_clamped(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        for pod in cluster.workers:
            said = pod.group.at("replicas") if pod.group else None
            asked, made = (said.integer if said else None), workers_asked(pod)
            stopped = pod.group.at("suspend") if pod.group else None
            if said is None or asked is None or made is None or (stopped is not None and stopped.value is True):
                continue
            if asked != made:
                yield said, f"{asked} asked for, {made} made"


@guard(
    "no-worker-replicas",
    "error",
    what="A worker group with GPUs has neither `replicas` nor `minReplicas` above 0, and nothing scales it",
    silently="the group has no pod, and the application waits for its first GPU",
    fix="write `replicas`, with `minReplicas` and `maxReplicas` of the same number",
    source="kuberay 1.6 raycluster_types.go (replicas is 0 by default), utils/util.go GetWorkerGroupDesiredReplicas",
)
def no_worker_replicas(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        scaled = cluster.spec.at("enableInTreeAutoscaling")
        if scaled is not None and scaled.value is not False:
            continue
        for pod in cluster.workers:
            said = pod.group.at("replicas") if pod.group else None
            if pod.group is not None and said is None and ray_gpus(pod) and workers_asked(pod) == 0:
                yield pod.group, f"{pod.name}: no replicas"


def _image_version(pod: Pod | None) -> tuple[Version, Located] | None:
    image = pod.container.at("image") if pod else None
    match = _RAY_IMAGE.search(image.text) if image is not None and image.text else None
    return (Version(match[1]), image) if match and image is not None else None


@guard(
    "ray-version-differs",
    "warning",
    what="`rayVersion` is not the Ray of the image",
    silently="KubeRay chooses its probes by it: those of another Ray may ask for a page that is not there",
    fix="write the image's version, and change both together",
    source="kuberay 1.6 pod.go supportsUnifiedHealthCheck (probes differ from Ray 2.53 on)",
)
def ray_version_differs(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        said = cluster.spec.at("rayVersion")
        try:
            version = Version(said.text or "") if said is not None else None
        except InvalidVersion:
            version = None
        for pod in (cluster.head, *cluster.workers):
            found = _image_version(pod)
            if said is not None and version and found and found[0] != version:
                yield said, f"rayVersion {version}, image {found[0]}"
                break


@guard(
    "ray-images-differ",
    "error",
    what="Head and workers have images of different Ray releases",
    silently="`ray start` of the workers ends with a version mismatch, and the cluster has a head only",
    fix="give head and workers the same image",
    source="ray 2.55 _private/node.py check_version_info",
)
def ray_images_differ(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        head = _image_version(cluster.head)
        for pod in cluster.workers:
            worker = _image_version(pod)
            if head and worker and head[0] != worker[0]:
                yield worker[1], f"head {head[0]}, {pod.name} {worker[0]}"


@guard(
    "head-only-proxy",
    "warning",
    what="Serve has no proxy on workers (`proxy_location`), and KubeRay's probe of workers asks for one",
    silently="no worker ever becomes ready, while the replicas on it serve through the head alone",
    fix="write `proxy_location: EveryNode`, or give the workers a readinessProbe of their own",
    source="kuberay#4994; kuberay 1.6 pod.go initLivenessAndReadinessProbe",
)
def head_only_proxy(view: View) -> Iterator[Found]:
    services = [cluster for cluster in view.clusters if cluster.service is not None]
    if len(services) != len(view.serve):
        return
    for cluster, config in zip(services, view.serve, strict=True):
        where = config.at("proxy_location")
        asked = any(pod.container.at("readinessProbe") is None for pod in cluster.workers)
        if where is not None and where.value in ("HeadOnly", "Disabled") and asked:
            yield where, f"proxy_location: {where.value}"
