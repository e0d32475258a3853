"""The RDMA NICs of the nodes: what a stack itself has to make so that engine pods can reach them.

Not here: Multus, SR-IOV policies and NVIDIA's operator. They are the cluster's, and DigitalOcean's nodes come with a
device plugin.
"""

import json
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from serving.kubernetes_names import labels
from serving.stack import Stack
from serving.versions import versions

NIC_CLUSTER_POLICY = "nic-cluster-policy"  # the operator looks at the policy of this name and at no other
_RESOURCE_PREFIX = "rdma/"  # of every resource of the shared device plugin
_MOST_PODS_A_NIC = 63  # `rdmaHcaMax` of NVIDIA's own examples; only a limit, since amd.com/gpu keeps a node to one pod


def fabric(stack: Stack, stack_name: str, namespace: str, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Register what the network mode of the stack's nodes needs.

    host: nothing, pods see the node's own NICs. pod: nothing, there are none. sriov: nothing, the attachments are the
    cluster's. multus: one attachment for each NIC in `hostDevices`. With `cluster.nicClusterPolicy`, NVIDIA's policy:
    pods that ask for its resources wait until its device plugin runs.
    """
    resources: list[pulumi.Resource] = []
    if stack.nic_cluster_policy:
        resources.append(_nic_cluster_policy(stack, stack.nic_cluster_policy, stack_name, opts))
    for name, device in stack.profile.host_devices.items():  # validated: with multus only
        resources.append(_attachment(name, device, stack_name, namespace, opts))
    return resources


def _attachment(
    name: str, device: str, stack_name: str, namespace: str, opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """The node's network device moves into the pod. DigitalOcean: "configure multi-node GPUs", read 2026-11."""
    config = {"cniVersion": "0.3.1", "type": "host-device", "device": device}
    return CustomResource(
        name,
        api_version="k8s.cni.cncf.io/v1",
        kind="NetworkAttachmentDefinition",
        metadata={"name": name, "namespace": namespace, "labels": labels(stack_name, "fabric")},
        spec={"config": json.dumps(config)},
        opts=opts,
    )


def _nic_cluster_policy(
    stack: Stack, interfaces: dict[str, list[str]], stack_name: str, opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """NVIDIA's policy for ConnectX NICs on nodes whose GPUs are AMD's.

    There is one for a whole cluster, and Pulumi's server-side apply writes into an object that exists instead of
    refusing it. Kubernetes refuses what would change somebody else's value: a policy that shares these NICs otherwise
    ends the update with a conflict. One that has other parts only (a driver, an IPAM) would be added to, so the
    pre-flight has to look for it. `retain_on_delete`, because the device plugin serves everybody's pods.
    """
    return CustomResource(
        NIC_CLUSTER_POLICY,
        api_version="mellanox.com/v1alpha1",
        kind="NicClusterPolicy",
        metadata={"name": NIC_CLUSTER_POLICY, "labels": labels(stack_name, "fabric")},
        spec=nic_cluster_policy_spec(stack, interfaces),
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True)),
    )


def resource_name(name: str) -> str:
    """A resource of the policy as pods ask for it: with the shared device plugin's prefix."""
    return f"{_RESOURCE_PREFIX}{name.removeprefix(_RESOURCE_PREFIX)}"


def nic_cluster_policy_spec(stack: Stack, interfaces: dict[str, list[str]]) -> dict[str, Any]:
    """`interfaces`: resource name, with or without `rdma/`, to the network interfaces that stand behind it."""
    shared = [
        {
            "resourceName": resource.removeprefix(_RESOURCE_PREFIX),
            "rdmaHcaMax": _MOST_PODS_A_NIC,
            "selectors": {"ifNames": names},
        }
        for resource, names in interfaces.items()
    ]
    return {
        # Without them the plugin lands on no AMD node (OCI's add-on documents the same for theirs).
        "tolerations": [toleration.model_dump(exclude_none=True) for toleration in stack.profile.tolerations],
        "rdmaSharedDevicePlugin": {
            "image": "k8s-rdma-shared-dev-plugin",
            "repository": "nvcr.io/nvidia/mellanox",
            "version": f"network-operator-v{versions()['nvidia_network_operator']['version']}",
            "config": json.dumps({"configList": shared}),
        },
    }
