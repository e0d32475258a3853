"""The simulated Ray behind KubeRay's real operator: a RayService that gets ready or does not, and the dashboard."""

import base64
import json
from typing import Any

import pytest
from kubernetes.client import ApiClient

from tests.cluster.conftest import ClusterShell
from tests.cluster.ray_service import RayService, application
from tests.cluster.waiting import eventually
from tools.rehearsal import nodes
from tools.rehearsal.cluster import SimulatedCluster


@pytest.fixture
def service(api: ApiClient, namespace: str) -> RayService:
    return RayService(api, namespace)


def test_ray_service_becomes_ready_through_the_operator(core: Any, namespace: str, service: RayService) -> None:
    service.create()
    eventually(service.ready, "RayService is Ready", 90)
    assert service.application()["status"] == "RUNNING"
    worker = core.list_namespaced_pod(namespace, label_selector="ray.io/node-type=worker").items[0]
    assert worker.spec.node_name.startswith("mi325x-")
    assert worker.status.pod_ip == nodes.address_of(worker.spec.node_name)
    services = core.list_namespaced_service(namespace).items
    assert f"{service.name}-serve-svc" in {found.metadata.name for found in services}


def test_dashboard_wants_the_clusters_token(
    core: Any, namespace: str, service: RayService, shell: ClusterShell
) -> None:
    service.create()
    eventually(service.ready, "RayService is Ready", 90)
    head = heads(core, namespace)[0]
    asked = f"curl -s http://{head.status.pod_ip}:8265/api/serve/applications/"
    assert "Unauthorized" in shell.run(asked).text
    assert "Unauthorized" in shell.run(f"{asked} -H 'Authorization: Bearer wrong'").text
    secret = core.read_namespaced_secret(head.metadata.labels["ray.io/cluster"], namespace)
    token = base64.b64decode(secret.data["auth_token"]).decode()
    details = json.loads(shell.run(f'{asked} -H "Authorization: Bearer {token}"').text)
    assert details["applications"]["llm"]["deployed_app_config"] == application()


def test_ray_service_that_never_becomes_ready(cluster: SimulatedCluster, namespace: str, service: RayService) -> None:
    cluster.ray.set("DEPLOY_FAILED", "engine core failed to start", namespace=namespace)
    service.create()
    eventually(lambda: service.application().get("status") == "DEPLOY_FAILED", "KubeRay sees the failure", 90)
    assert service.application()["message"] == "engine core failed to start"
    assert not service.ready()


def test_engines_wait_for_gpus_that_no_worker_has(service: RayService) -> None:
    service.create(replicas=2, workers=1)

    def waits() -> bool:
        deployments = service.application().get("serveDeploymentStatuses", {})
        return any("waiting for resources" in d.get("message", "") for d in deployments.values())

    eventually(waits, "Serve waits for 8 more GPUs", 90)
    assert not service.ready()


def test_a_new_head_is_a_fresh_ray(core: Any, namespace: str, service: RayService) -> None:
    service.create()
    eventually(service.ready, "RayService is Ready", 90)
    before, deployed = heads(core, namespace)[0].metadata, deployments_by_kuberay(core, namespace)
    core.delete_namespaced_pod(before.name, namespace)

    def deployed_again() -> bool:
        uids = {head.metadata.uid for head in heads(core, namespace)}
        return bool(uids - {before.uid}) and deployments_by_kuberay(core, namespace) > deployed

    eventually(deployed_again, "KubeRay deploys to a new head")
    eventually(service.ready, "RayService is Ready again", 90)


def deployments_by_kuberay(core: Any, namespace: str) -> int:
    """How often KubeRay says that it has handed an application to a Ray cluster."""
    events = core.list_namespaced_event(namespace, field_selector="reason=UpdatedServeApplications").items
    return sum(event.count or 1 for event in events)


def heads(core: Any, namespace: str) -> list[Any]:
    return core.list_namespaced_pod(namespace, label_selector="ray.io/node-type=head").items
