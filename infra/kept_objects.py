"""What `pulumi destroy` leaves behind, said at its end: resource pd:index:KeptObjects."""

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.fabric import NIC_CLUSTER_POLICY
from serving.kubernetes_names import RESULTS
from serving.stack import Stack

_RAY_DEFINITIONS = ("rayclusters", "raycronjobs", "rayjobs", "rayservices")
Kept = list[dict[str, str]]


class KeptObjects(pulumi.CustomResource):
    """No outputs. See infra/provider/kept_objects.py. namespace: the stack's; empty for one that only owns nodes.

    To be deleted last, and heard last, it has to be in `depends_on` of the Kubernetes provider of the stack.
    """

    def __init__(
        self,
        name: str,
        stack_name: str,
        access: KubernetesAccess,
        kept: Kept,
        *,
        namespace: str = "",
        cluster_goes: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            **access.inputs,
            "kubeconfigOf": access.owner,
            "stack": stack_name,
            "namespace": namespace,
            "namespaceWasThere": None,  # an output
            "kept": kept,
            "hint": "" if cluster_goes else f"`pulumi up` of {stack_name} finds it again.",
            "clusterGoes": cluster_goes,
        }
        super().__init__("pd:index:KeptObjects", name, inputs, access.after_it(opts))


def kept_of(stack: Stack, namespace: str) -> Kept:
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
    if stack.nic_cluster_policy:
        kept.append(
            {
                "kind": "NicClusterPolicy",
                "name": NIC_CLUSTER_POLICY,
                "apiPath": f"/apis/mellanox.com/v1alpha1/nicclusterpolicies/{NIC_CLUSTER_POLICY}",
                "note": "every pod that asks for its RDMA devices needs it",
            }
        )
    if stack.installs_operator:
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
