"""The stack's namespace. It stays when the stack is destroyed, because the volume of results lives in it."""

import re

import pulumi

from serving.errors import ConfigError
from serving.kubernetes_names import NAMESPACE, is_the_clusters_own, labels
from serving.stack import Stack

_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"  # value of a label, as Kubernetes demands


def check_stack_name(name: str, namespace: str) -> None:
    """The stack's name becomes a label of everything, and its namespace if none is set. Raises ConfigError."""
    if not re.fullmatch(_LABEL, name):
        raise ConfigError("stack", f"the name {name!r} is no Kubernetes label", "letters, digits, -, _ and . inside")
    if not namespace and not re.fullmatch(NAMESPACE, name):
        problem = f"the stack's name {name!r} cannot be a namespace's"
        raise ConfigError("pd-mi325x:namespace", problem, "set a namespace: lower case letters, digits and -")
    if not namespace and is_the_clusters_own(name):
        problem = f"the stack's name {name!r} is a namespace of the cluster's own"
        raise ConfigError("pd-mi325x:namespace", problem, "set another one")


def make_namespace(stack: Stack, stack_name: str, namespace: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """Register the namespace; one that is there already is taken over, with whatever is in it."""
    from pulumi_kubernetes.core.v1 import Namespace

    # Host network, host paths and IPC_LOCK need pod security level `privileged`; plain CPU pods need none of them.
    platform = stack.platform_
    plain = stack.profile.network == "pod" and not (platform.host_paths or platform.capabilities)
    plain = plain and stack.weights.mode != "local"
    level = "baseline" if plain else "privileged"
    return Namespace(
        "namespace",
        metadata={
            "name": namespace,
            "labels": {**labels(stack_name, "namespace"), "pod-security.kubernetes.io/enforce": level},
        },
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True)),
    )
