"""The cluster of another stack of this project, which owns the nodes and outlives this one."""

from typing import Any

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.one_line import end_with
from serving.cluster import StackCluster
from serving.errors import ConfigError


def cluster_of_stack(cluster: StackCluster) -> KubernetesAccess:
    """Read that stack's output `cluster`. Pulumi fails with one line when there is no such stack.

    Raises ConfigError for a stack that names itself.
    """
    if cluster.stack == pulumi.get_stack():
        fix = "name the one that owns the nodes, a stack with nodePool"
        raise ConfigError("pd-mi325x:cluster.stack", f"{cluster.stack} is this stack itself", fix)
    name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{cluster.stack}"

    def kubeconfig(output: Any) -> str:
        if not (output or {}).get("kubeconfig"):
            end_with(f"pd-mi325x:cluster.stack: {cluster.stack} has no nodes yet; run `pulumi up` in it")
        return output["kubeconfig"]

    found = pulumi.StackReference("nodes", stack_name=name).get_output("cluster")
    return KubernetesAccess(pulumi.Output.secret(found.apply(kubeconfig)), owner=cluster.stack)
