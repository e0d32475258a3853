"""A small pod and a Job of one, and looks at them once they are there."""

from typing import Any

from tests.cluster.ray_service import container
from tests.cluster.waiting import eventually


def pod(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"containers": [container("main", {})], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def running(core: Any, namespace: str, name: str) -> Any:
    eventually(lambda: core.read_namespaced_pod(name, namespace).status.phase == "Running", f"{name} runs")
    return core.read_namespaced_pod(name, namespace)


def job(name: str) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [container("main", {})]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def job_pod(core: Any, namespace: str, name: str) -> str:
    found = eventually(
        lambda: core.list_namespaced_pod(namespace, label_selector=f"job-name={name}").items, f"pod of job {name}"
    )
    return found[0].metadata.name
