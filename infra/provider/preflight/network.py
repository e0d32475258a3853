"""What the network of an engine pod needs: Multus, attachments that somebody else made, NVIDIA's network operator."""

from infra.provider.preflight.facts import ATTACHMENTS, NVIDIA, Facts
from infra.provider.resource import Properties


def foreign_attachments(inputs: Properties) -> list[str]:
    """The attachments that a pod names and this stack does not make, as namespace/name, each once.

    In a pod's annotation a name may have a namespace in front of it and an interface behind it (multus-cni).
    """
    names = (name.partition("@")[0] for name in inputs["attachments"])
    qualified = (name if "/" in name else f"{inputs['namespace']}/{name}" for name in names)
    made = {f"{inputs['namespace']}/{name}" for name in inputs["hostDevices"]}
    return [name for name in dict.fromkeys(qualified) if name not in made]


def lacks(inputs: Properties, facts: Facts) -> list[str]:
    """One line about attachments and one about the policy, at most."""
    attachments = _attachments(inputs, facts) if inputs["network"] in ("multus", "sriov") else []
    return attachments + (_nic_cluster_policy(inputs, facts) if inputs["nicClusterPolicy"] else [])


def _attachments(inputs: Properties, facts: Facts) -> list[str]:
    if "network-attachment-definitions" not in facts.served.get(ATTACHMENTS, set()):
        return [
            f"network: the API does not serve network-attachment-definitions ({ATTACHMENTS}), which network "
            f"{inputs['network']} needs; install Multus, or set cluster.nodes.network"
        ]
    # Where these credentials may not look, the line about permissions says so.
    hidden = {access.namespace for access in facts.denied if access.resource == "network-attachment-definitions"}
    visible = [name for name in foreign_attachments(inputs) if name.partition("/")[0] not in hidden]
    missing = [name for name in visible if name not in facts.attachments]
    if not missing:
        return []
    return [
        f"network: there is no NetworkAttachmentDefinition {', '.join(missing)}; make it, or write NAMESPACE/NAME of "
        "one that is there in cluster.nodes.attachments"
    ]


def _nic_cluster_policy(inputs: Properties, facts: Facts) -> list[str]:
    if "nicclusterpolicies" not in facts.served.get(NVIDIA, set()):
        return [
            f"network: the API does not serve nicclusterpolicies ({NVIDIA}); install NVIDIA's network operator, or "
            "remove cluster.nicClusterPolicy"
        ]
    others = [
        policy["metadata"]["name"]
        for policy in facts.nic_policies or []
        if (policy["metadata"].get("labels") or {}).get("app.kubernetes.io/instance") != inputs["stack"]
    ]
    if not others:
        return []
    # The operator acts on one policy and sets every other to `ignore` (network-operator, nicclusterpolicy_controller).
    return [
        f"network: NicClusterPolicy {', '.join(others)} is somebody else's, and a cluster has one; remove "
        "cluster.nicClusterPolicy, and set cluster.nodes.rdmaResources to what that one makes"
    ]
