"""Whose the namespace and the objects in it are. Pulumi's server-side apply takes over what has the right name."""

from infra.provider.kubernetes_api import Json
from infra.provider.preflight.facts import Facts
from infra.provider.resource import Properties
from serving.kubernetes_names import (
    BENCHMARK,
    BENCHMARK_TARGET,
    HUGGING_FACE_TOKEN,
    METRICS_SERVICE,
    RAY_SERVICE,
    RESULTS,
)

_INSTANCE = "app.kubernetes.io/instance"
_OURS = ("app.kubernetes.io/name", "pd-mi325x")
_CLAIM = f"PersistentVolumeClaim {RESULTS}"


def paths(inputs: Properties) -> dict[str, str]:
    """What this stack will make under a fixed name -> where it would be."""
    core = f"/api/v1/namespaces/{inputs['namespace']}"
    return {
        f"RayService {RAY_SERVICE}": f"/apis/ray.io/v1/namespaces/{inputs['namespace']}/rayservices/{RAY_SERVICE}",
        f"Service {METRICS_SERVICE}": f"{core}/services/{METRICS_SERVICE}",
        f"ConfigMap {BENCHMARK_TARGET}": f"{core}/configmaps/{BENCHMARK_TARGET}",
        f"Secret {HUGGING_FACE_TOKEN}": f"{core}/secrets/{HUGGING_FACE_TOKEN}",
        _CLAIM: f"{core}/persistentvolumeclaims/{RESULTS}",
        f"CronJob {BENCHMARK}": f"/apis/batch/v1/namespaces/{inputs['namespace']}/cronjobs/{BENCHMARK}",
    }


def lacks(inputs: Properties, facts: Facts) -> list[str]:
    """A namespace of another stack, else objects of somebody else, else a claim that cannot become what is asked."""
    other = "set pd-mi325x:namespace to another one"
    labels = _labels(facts.namespace)
    if labels.get(_OURS[0]) == _OURS[1] and labels.get(_INSTANCE) not in (None, inputs["stack"]):
        return [f"namespace {inputs['namespace']} belongs to stack {labels[_INSTANCE]}; {other}"]
    foreign = [
        name for name, there in facts.named.items() if there and _labels(there).get(_INSTANCE) != inputs["stack"]
    ]
    if foreign:
        return [
            f"names: {', '.join(foreign)} in namespace {inputs['namespace']} is not this stack's and would be "
            f"overwritten; {other}, or remove it"
        ]
    claim = facts.named.get(_CLAIM)
    has = (claim or {}).get("spec", {}).get("storageClassName")
    if has and inputs["storageClass"] not in ("", has):
        return [
            f"storage: the claim {RESULTS} in namespace {inputs['namespace']} has StorageClass {has!r} for good; set "
            f"cluster.nodes.storageClass to it, or delete the claim with the runs on it"
        ]
    return []


def _labels(there: Json | None) -> dict[str, str]:
    return (there or {}).get("metadata", {}).get("labels") or {}
