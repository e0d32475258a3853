"""Which stacks `make rehearse` can bring up, and on which nodes. What it cannot is said before anything starts."""

from typing import Any

from serving.cluster import ExistingCluster, StackCluster
from serving.stack import Stack
from tools.rehearsal import nodes
from tools.toolchain.errors import ToolchainError

ITEM = "rehearse"
_SHELL = "define it yourself in `make rehearse-shell`"


def check(name: str, stack: Stack) -> None:
    """Raise ToolchainError with the first thing of the stack that a rehearsal has not."""
    if stack.target != "kubernetes" or stack.cluster is None:
        raise ToolchainError(ITEM, f"{name} is not for Kubernetes", "`make demo` runs the local stack for real")
    cluster, profile = stack.cluster, stack.profile
    if isinstance(cluster, StackCluster):
        fix = "rehearse a doks stack of the same topology, or both stacks in `make rehearse-shell`"
        raise ToolchainError(ITEM, f"{name} needs the nodes of {cluster.stack}, another stack", fix)
    if isinstance(cluster, ExistingCluster) and cluster.profile_name not in nodes.OF_PROFILE:
        problem = f"{name} is for nodes of profile {cluster.profile_name}, of which none are simulated"
        raise ToolchainError(ITEM, problem, f"simulated are {', '.join(nodes.OF_PROFILE)}")
    if profile.network in ("multus", "sriov"):
        problem = f"{name} has network {profile.network}, and the simulated cluster no NetworkAttachmentDefinition"
        raise ToolchainError(ITEM, problem, _SHELL)
    if isinstance(cluster, ExistingCluster) and cluster.nic_cluster_policy:
        raise ToolchainError(
            ITEM, f"{name} makes a NicClusterPolicy, which the simulated cluster does not know", _SHELL
        )
    if stack.monitoring == "prometheus-operator":
        raise ToolchainError(ITEM, f"{name} makes a PodMonitor, which the simulated cluster does not know", _SHELL)


def nodes_of(stack: Stack) -> list[dict[str, Any]]:
    """Nodes for the engines of a stack that is for a cluster of somebody else's. Others make theirs themselves."""
    if not isinstance(stack.cluster, ExistingCluster):
        return []
    profile = stack.cluster.profile_name
    return [nodes.OF_PROFILE[profile](f"{profile}-{number}") for number in range(stack.topology_.replicas)]
