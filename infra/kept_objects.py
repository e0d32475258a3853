"""What `pulumi destroy` leaves in the cluster, said at its end: resource pd:index:KeptObjects."""

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.fabric import NIC_CLUSTER_POLICY
from serving.cluster import DoksCluster, ExistingCluster, StackCluster
from serving.kubernetes_names import RESULTS
from serving.stack import Stack

_RAY_DEFINITIONS = ("rayclusters", "raycronjobs", "rayjobs", "rayservices")


class KeptObjects(pulumi.CustomResource):
    """No outputs. See infra/provider/kept_objects.py.

    To be deleted last, and heard last, it has to be in `depends_on` of the Kubernetes provider of the stack.
    """

    def __init__(
        self,
        name: str,
        stack: Stack,
        stack_name: str,
        namespace: str,
        access: KubernetesAccess,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "kubeconfig": access.kubeconfig,
            "context": access.context,
            "stack": stack_name,
            "namespace": namespace,
            "namespaceWasThere": None,  # an output
            "kept": _kept(stack, namespace),
            "hint": f"`pulumi up` of {stack_name} finds it again."
            if not isinstance(stack.cluster, DoksCluster)
            else "",
            "clusterGoes": isinstance(stack.cluster, DoksCluster),
        }
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=access.depends_on))
        super().__init__("pd:index:KeptObjects", name, inputs, opts)


def _kept(stack: Stack, namespace: str) -> list[dict[str, str]]:
    """What infra/ registers with `retain_on_delete`, in an order in which it can be removed."""
    home = f"/api/v1/namespaces/{namespace}"
    kept = [
        {
            "kind": "PersistentVolumeClaim",
            "name": RESULTS,
            "apiPath": f"{home}/persistentvolumeclaims/{RESULTS}",
            "note": "the benchmark runs",
        },
        {"kind": "Namespace", "name": namespace, "apiPath": home, "note": "with whatever else is in it"},
    ]
    if isinstance(stack.cluster, ExistingCluster) and stack.cluster.nic_cluster_policy:
        kept.append(
            {
                "kind": "NicClusterPolicy",
                "name": NIC_CLUSTER_POLICY,
                "apiPath": f"/apis/mellanox.com/v1alpha1/nicclusterpolicies/{NIC_CLUSTER_POLICY}",
                "note": "every pod that asks for its RDMA devices needs it",
            }
        )
    if stack.ray_operator.install == "chart" and not isinstance(stack.cluster, StackCluster):
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        kept += [
            {
                "kind": "CustomResourceDefinition",
                "name": f"{plural}.ray.io",
                "apiPath": f"{definitions}/{plural}.ray.io",
                "note": "with every Ray cluster, job and service there is",
            }
            for plural in _RAY_DEFINITIONS
        ]
    return kept
