"""How long pods may take before Kubernetes ends them, and when they get requests."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.sizes import known_model, ranks
from serving.guards.view import Engine, Pod, View

# Seconds until vLLM answers, without reading weights. On two H200 with vLLM 0.25, a model of 14 billion parameters with
# dummy weights took 182 s at the fastest. Less here: a small model without CUDA graphs is faster.
_START_SECONDS = {1: 60, 2: 120}
_READ_GIGABYTES = 3.125  # a second, through 25 Gb/s: the private network of DigitalOcean's GPU nodes


def _seconds(probe: Located) -> int | None:
    """How long a probe lets a container fail from its start on; Kubernetes' own defaults where it says nothing."""
    numbers: list[int] = []
    for name, default in (("initialDelaySeconds", 0), ("periodSeconds", 10), ("failureThreshold", 3)):
        said = probe.at(name)
        number = default if said is None or said.value is None else said.integer
        if number is None:
            return None
        numbers.append(number)
    return numbers[0] + numbers[1] * numbers[2]


def _load_seconds(engine: Engine, view: View) -> float:
    """A low estimate."""
    model, how = known_model(engine, view), engine.argument("load_format")
    read = 0.0 if model is None or (how is not None and how.value == "dummy") else model.gigabytes / _READ_GIGABYTES
    return _START_SECONDS[min(ranks(engine), 2)] + read


@guard(
    "probe-shorter-than-load",
    "warning",
    what="A probe gives an engine less time than it takes to load the model",
    silently="the kubelet ends the container while it loads, and it starts anew, for ever",
    fix="add a startupProbe with room: `failureThreshold: 120` and `periodSeconds: 30` are an hour, as llm-d has it",
    source="llm-d AMD overlay (120 x 30 s); measured on two H200 (182 to 211 s); kubernetes docs, startup probes",
)
def probe_shorter_than_load(view: View) -> Iterator[Found]:
    for engine in view.engines:
        if engine.by_ray or engine.pod is None or not engine.pod.gpus or not ranks(engine):
            continue
        # Liveness waits until a startup probe has passed; readiness ends nothing.
        probe = engine.pod.container.at("startupProbe") or engine.pod.container.at("livenessProbe")
        given, needed = (_seconds(probe) if probe else None), _load_seconds(engine, view)
        if probe is not None and given is not None and given < needed:
            yield probe, f"{given} s, and it takes {needed:.0f} s at the least"


def _containers(pod: Pod) -> Iterator[Located]:
    """All of a pod, those beside the engine too: the pod is ready when all are."""
    for kind in ("containers", "initContainers"):
        listed = pod.node.at(kind)
        yield from listed.entries() if listed else ()


@guard(
    "no-readiness-probe",
    "warning",
    what="An engine of several replicas has no readiness probe",
    silently="requests are sent to pods that still load, and an update ends the old pod before the new one answers",
    fix="add `readinessProbe: {httpGet: {path: /health, port: 8000}}`",
    source="kubernetes docs, readiness probes; vllm 0.18 entrypoints/openai/api_server.py (/health)",
)
def no_readiness_probe(view: View) -> Iterator[Found]:
    for engine in view.engines:
        pod = engine.pod
        if engine.by_ray or pod is None or "leaderWorkerTemplate" in pod.template.path or (pod.replicas or 0) < 2:
            continue
        if not any(c.at(kind) for c in _containers(pod) for kind in ("readinessProbe", "startupProbe")):
            yield pod.container, f"{pod.replicas} replicas of {pod.name}"


@guard(
    "unhealthy-threshold-ignored",
    "note",
    what="A RayService sets a time after which KubeRay is to replace an unhealthy cluster",
    silently="KubeRay does not read it any more: nothing is replaced, sooner or later",
    fix="remove it, and watch the RayService's condition `Ready`",
    source="kuberay 1.6 rayservice_types.go (Deprecated: not used anymore); kuberay#1685",
)
def unhealthy_threshold_ignored(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        for name in ("serviceUnhealthySecondThreshold", "deploymentUnhealthySecondThreshold"):
            said = cluster.service.at(name) if cluster.service else None
            if said is not None and said.value is not None:
                yield said, name
