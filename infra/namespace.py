"""The stack's namespace. It stays when the stack is destroyed, because the volume of results lives in it."""

import pulumi

from serving.kubernetes_names import labels
from serving.stack import Stack


def make_namespace(stack: Stack, stack_name: str, namespace: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """Register the namespace; one that is there already is taken over, with whatever is in it."""
    from pulumi_kubernetes.core.v1 import Namespace

    # Host network, host paths and IPC_LOCK need pod security level `privileged`; plain CPU pods need none of them.
    plain = stack.profile.network == "pod" and not stack.platform_.host_paths and stack.weights.mode != "local"
    level = "baseline" if plain else "privileged"
    return Namespace(
        "namespace",
        metadata={
            "name": namespace,
            "labels": {**labels(stack_name, "namespace"), "pod-security.kubernetes.io/enforce": level},
        },
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True)),
    )
