"""The cluster of another stack of this project, which owns the nodes and outlives this one."""

import pulumi

from infra.cluster.access import KubernetesAccess
from serving.cluster import StackCluster


def cluster_of_stack(cluster: StackCluster) -> KubernetesAccess:
    """Read that stack's output `cluster`. Pulumi fails with one line when there is no such stack."""
    name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{cluster.stack}"
    access = pulumi.StackReference("nodes", stack_name=name).require_output("cluster")
    return KubernetesAccess(kubeconfig=pulumi.Output.secret(access.apply(lambda it: it["kubeconfig"])))
