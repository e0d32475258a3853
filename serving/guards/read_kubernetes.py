"""Pods, Ray clusters and engines out of Kubernetes manifests."""

from __future__ import annotations

from dataclasses import dataclass, field

from serving.guards.located import Located
from serving.guards.read_serve import applications
from serving.guards.view import Application, Engine, Pod, PodKind, RayClusterView, Role
from serving.guards.vllm_command import vllm_arguments
from serving.guards.yaml_files import YamlOrigin, documents

# Where the pod template of a kind is.
_TEMPLATES: dict[str, tuple[tuple[str | int, ...], ...]] = {
    "Deployment": (("spec", "template"),),
    "StatefulSet": (("spec", "template"),),
    "DaemonSet": (("spec", "template"),),
    "ReplicaSet": (("spec", "template"),),
    "Job": (("spec", "template"),),
    "CronJob": (("spec", "jobTemplate", "spec", "template"),),
    "Pod": ((),),
    "LeaderWorkerSet": (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
    ),
}
_CLUSTERS = {"RayService": ("spec", "rayClusterConfig"), "RayCluster": ("spec",), "RayJob": ("spec", "rayClusterSpec")}
_WITH_QUERIES = ("PrometheusRule", "ConfigMap", "GrafanaDashboard")
_ROLE_LABELS = ("llm-d.ai/role", "role", "app.kubernetes.io/component", "component")


@dataclass
class Manifests:
    """What several manifests hold together."""

    clusters: list[RayClusterView] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    applications: list[Application] = field(default_factory=list)
    engines: list[Engine] = field(default_factory=list)
    serve: list[Located] = field(default_factory=list)
    configs: list[Located] = field(default_factory=list)
    queries: list[Located] = field(default_factory=list)


def is_manifest(document: Located) -> bool:
    return document.at("kind") is not None and document.at("apiVersion") is not None


def read_manifest(document: Located, found: Manifests) -> None:
    """Add what a manifest holds. Raises ConfigError where a text in it should be YAML and is not."""
    kind = document.at("kind")
    name = kind.value if kind is not None else None
    if not isinstance(name, str):
        return
    if name in _CLUSTERS:
        _ray(document, name, found)
    if name in _WITH_QUERIES:
        found.queries.append(document)
    for path in _TEMPLATES.get(name, ()):
        template = document.at(*path)
        if template is not None and template.at("spec") is not None:
            _plain(document, template, found)


def _ray(document: Located, kind: str, found: Manifests) -> None:
    cluster = ray_cluster(document, kind)
    if cluster is not None:
        found.clusters.append(cluster)
        found.pods += [*([cluster.head] if cluster.head else []), *cluster.workers]
    text = document.at("spec", "serveConfigV2")
    if text is not None and text.text is not None:
        origin = text.origin if isinstance(text.origin, YamlOrigin) else None
        for config in documents(text.text, text.place.file, origin, text.path):
            found.configs.append(config)
            found.serve.append(config)
            made = applications(config, cluster)
            found.applications += made
            found.engines += [engine for application in made for engine in application.engines]


def ray_cluster(document: Located, kind: str) -> RayClusterView | None:
    """The cluster of a RayService, a RayCluster or a RayJob."""
    spec = document.at(*_CLUSTERS[kind])
    if spec is None:
        return None
    groups = spec.at("workerGroupSpecs")
    workers = [pod for group in (groups.entries() if groups else ()) if (pod := _group(group, "worker"))]
    service = document.at("spec") if kind == "RayService" else None
    return RayClusterView(spec, _group(spec.at("headGroupSpec"), "head"), workers, service)


def _group(group: Located | None, kind: PodKind) -> Pod | None:
    if group is None or (template := group.at("template")) is None:
        return None
    name = group.at("groupName")
    replicas = group.at("replicas")
    count = 1 if kind == "head" else replicas.integer if replicas is not None else None
    return _pod(template, kind, str(name.value) if name else "head", group, count)


def _plain(document: Located, template: Located, found: Manifests) -> None:
    replicas = document.at("spec", "replicas")
    name = document.at("metadata", "name")
    count = replicas.integer if replicas is not None else 1
    spec = template.at("spec")
    containers = spec.at("containers") if spec else None
    for container in containers.entries() if containers else ():
        arguments = vllm_arguments(container)
        if arguments is None:
            continue
        pod = Pod(
            "engine",
            str(name.value) if name else "",
            template,
            spec or template,
            container,
            _env(container),
            None,
            count,
        )
        found.pods.append(pod)
        kv = arguments.get("kv_transfer_config")
        below = dict(kv.items()) if kv and isinstance(kv.value, dict) else None
        role = _role(document, template, pod, below)
        found.engines.append(Engine(role, container, arguments, below, pod.environment, False, count, pod))
        return
    pod = _pod(template, "other", str(name.value) if name else "", None, count)
    found.pods += [pod] if pod else []


def _pod(template: Located, kind: PodKind, name: str, group: Located | None, count: int | None) -> Pod | None:
    """Of a template: its first container is Ray's in Ray's pods, and as good as any in others."""
    spec, container = template.at("spec"), template.at("spec", "containers", 0)
    if spec is None or container is None:
        return None
    return Pod(kind, name, template, spec, container, _env(container), group, count)


def _env(container: Located) -> dict[str, Located]:
    listed = container.at("env")
    found: dict[str, Located] = {}
    for entry in listed.entries() if listed else ():
        name = entry.at("name")
        if name is not None and isinstance(name.value, str):
            found[name.value] = entry
    return found


def _role(document: Located, template: Located, pod: Pod, kv: dict[str, Located] | None) -> Role:
    """Of an engine without Ray: what its KV role, its labels or its name say."""
    if kv is None:
        return "aggregated"
    role = kv["kv_role"].value if "kv_role" in kv else None
    if role in ("kv_producer", "kv_consumer"):
        return "prefill" if role == "kv_producer" else "decode"
    said = [pod.name]
    for place in (template.at("metadata", "labels"), document.at("metadata", "labels")):
        said += [str(label.value) for key in _ROLE_LABELS if place and (label := place.at(key)) is not None]
    for text in said:
        if "prefill" in text.lower():
            return "prefill"
        if "decode" in text.lower():
            return "decode"
    return "aggregated"


def role_of_labels(pod: Pod) -> Role | None:
    """What the labels of a pod's template say, whatever its engine is told."""
    for key in _ROLE_LABELS:
        label = pod.template.at("metadata", "labels", key)
        text = label.text.lower() if label is not None and label.text else ""
        if "prefill" in text:
            return "prefill"
        if "decode" in text:
            return "decode"
    return None
