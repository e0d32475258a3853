"""Whether the cluster is fit for the stack: resource pd:index:ClusterPreflight. Everything else waits for it."""

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.fabric import resource_name
from serving.cluster import StackCluster
from serving.fabric_plan import fabric_plan
from serving.pods import pod_security
from serving.stack import Stack

# After a pool's nodes have joined, the device plugins still have to start before there are GPUs and NICs to ask for.
# How long that takes on DOKS was not measured; half an hour is when a person should look.
_TIMEOUT_SECONDS = 1800


class ClusterPreflight(pulumi.CustomResource):
    """No outputs. See infra/provider/cluster_preflight.py and docs/reference/preflight.md."""

    def __init__(
        self,
        name: str,
        stack: Stack,
        stack_name: str,
        namespace: str,
        access: KubernetesAccess,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        profile = stack.profile
        inputs = {
            **access.inputs,
            "contextChosen": access.context_chosen,
            "stack": stack_name,
            "namespace": namespace,
            "wait": access.waits,
            "timeoutSeconds": _TIMEOUT_SECONDS,
            "nodes": stack.topology_.replicas,
            "gpuResource": profile.gpu_resource,
            "gpusPerNode": profile.gpus_per_node,
            "engineCpu": profile.engine_cpu,
            "engineMemory": profile.engine_memory,
            "rdmaResources": _expected_devices(stack),
            "tolerations": [toleration.model_dump(exclude_none=True) for toleration in profile.tolerations],
            "nodeSelector": profile.node_selector,
            "systemNodeSelector": profile.system_node_selector,
            "headCpu": profile.head_cpu,
            "headMemory": profile.head_memory,
            "rayOperator": {
                "install": "chart" if stack.installs_operator else "preinstalled",
                "version": stack.ray_operator.version,
                "namespace": stack.ray_operator.in_namespace(namespace).namespace,
                "stack": stack.cluster.stack if isinstance(stack.cluster, StackCluster) else "",
            },
            "network": profile.network,
            "attachments": profile.attachments,
            "hostDevices": profile.host_devices,
            "nicClusterPolicy": bool(stack.nic_cluster_policy),
            "monitoring": stack.monitoring,
            "inspectsFabric": fabric_plan(stack).inspect,
            "storageClass": profile.storage_class,
            "resultsSize": stack.results.size,
            "podSecurity": pod_security(stack),
            "pullSecret": stack.images.pull_secret if stack.images else "",
            "persistentVolume": stack.weights.mode == "nfs",
        }
        super().__init__("pd:index:ClusterPreflight", name, inputs, access.after_it(opts))


def _expected_devices(stack: Stack) -> dict[str, int]:
    """RDMA resources that the nodes must have already: not those that this stack's own NicClusterPolicy makes."""
    names = {resource_name(name) for name in stack.nic_cluster_policy}
    return {name: count for name, count in stack.profile.rdma_resources.items() if name not in names}
