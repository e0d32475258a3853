"""The RayService in the cluster, its metrics service, and the wait until it serves and all of the stack is there."""

from typing import Any, cast

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.drift import healed_by_force
from infra.late import Late
from infra.still_there import objects_of
from serving.kubernetes_names import RAY_SERVICE
from serving.ray_cluster import RAY_SERVICE_SPEC, metrics_service, ray_cluster_spec, ray_service_metadata
from serving.serve_config import application, serve_config
from serving.stack import Stack
from serving.yaml_text import yaml_text


class RayServiceReady(pulumi.CustomResource):
    """Resource pd:index:RayServiceReady. See infra/provider/ray_service_ready.py."""

    def __init__(
        self, name: str, access: KubernetesAccess, inputs: dict[str, Any], opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__("pd:index:RayServiceReady", name, {**access.inputs, **inputs}, access.after_it(opts))


def deploy_ray_service(
    stack: Stack,
    stack_name: str,
    namespace: str,
    late: Late,
    gate: pulumi.Resource,
    opts: pulumi.ResourceOptions,
) -> tuple[pulumi.Resource, pulumi.Resource]:
    """Register the RayService, and the service for its metrics. late: what this update finds out.

    gate: the RDMA gate, in `opts.depends_on`; where it has to be passed again, the RayService goes first.
    """
    from pulumi_kubernetes.apiextensions import CustomResource
    from pulumi_kubernetes.core.v1 import Service

    service = CustomResource(
        "ray-service",
        api_version="ray.io/v1",
        kind="RayService",
        metadata=healed_by_force(ray_service_metadata(stack_name, namespace)),
        # Piece by piece: a first preview does not know what nodes tell or which image is built, and shows all else.
        spec={
            **RAY_SERVICE_SPEC,
            "serveConfigV2": late.of(stack, lambda whole: yaml_text(serve_config(whole))),
            "rayClusterConfig": late.of(stack, lambda whole: ray_cluster_spec(whole, stack_name)),
        },
        opts=pulumi.ResourceOptions.merge(
            opts,
            pulumi.ResourceOptions(
                # KubeRay ignores an edit of these (serving/ray_cluster.py), so that an update would change nothing.
                # Pulumi waits until the old pods are gone, and their GPUs free, before it makes the successor.
                replace_on_changes=["spec.rayClusterConfig"],
                delete_before_replace=True,
                replace_with=[gate],  # its pods need the GPUs that engines hold
            ),
        ),
    )
    metrics = metrics_service(stack_name, namespace)
    # Not awaited: it has no address before there is a pod, and the pods are waited for below.
    metrics["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true"}
    return service, Service("metrics", metadata=metrics["metadata"], spec=metrics["spec"], opts=opts)


def wait_for_it(
    stack: Stack,
    namespace: str,
    access: KubernetesAccess,
    late: Late,
    service: pulumi.Resource,
    objects: list[pulumi.Resource],
) -> None:
    """Register the wait until the RayService `service` serves; `objects`: everything else in the namespace."""
    live = cast("pulumi.Output[dict[str, Any]]", getattr(service, "metadata"))  # noqa: B009  the SDK declares no outputs
    inputs = {
        "namespace": namespace,
        "name": RAY_SERVICE,
        # Absent in a preview of what does not exist yet.
        "uid": live.apply(lambda metadata: metadata.get("uid", "")),
        "generation": live.apply(lambda metadata: metadata.get("generation", 0)),
        "application": late.of(stack, application),
        "pods": 1 + stack.topology_.replicas,
        "objects": objects_of(stack, namespace),
        "readyTimeoutSeconds": stack.ready_timeout_seconds,
    }
    waits = pulumi.ResourceOptions(depends_on=[service, *objects], parent=service)
    RayServiceReady("ray-service-ready", access, inputs, waits)
