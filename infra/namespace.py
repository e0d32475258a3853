"""The stack's namespace. It stays when the stack is destroyed, because the volume of results lives in it."""

import re

import pulumi

from infra.drift import healed_by_force
from serving.errors import ConfigError
from serving.kubernetes_names import NAMESPACE, POD_SECURITY, is_the_clusters_own, labels
from serving.pods import pod_security
from serving.stack import Stack

_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"  # value of a label, as Kubernetes demands
_LONGEST_LABEL = 63


def check_stack_name(name: str, namespace: str) -> None:
    """The stack's name becomes a label of everything, and its namespace if none is set. Raises ConfigError."""
    if len(name) > _LONGEST_LABEL:
        problem = f"the name {name!r} has {len(name)} characters, too many for a Kubernetes label"
        raise ConfigError("stack", problem, f"at most {_LONGEST_LABEL}")
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

    metadata = {"name": namespace, "labels": {**labels(stack_name, "namespace"), POD_SECURITY: pod_security(stack)}}
    return Namespace(
        "namespace",
        # By force: a namespace that is kept remembers the field manager of the stack's earlier life, which another
        # level would conflict with. Somebody else's level is for the pre-flight to refuse.
        metadata=healed_by_force(metadata),  # pyright: ignore[reportArgumentType]
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True)),
    )
