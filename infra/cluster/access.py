"""How a program reaches a Kubernetes cluster, whoever made it."""

from dataclasses import dataclass, field

import pulumi


@dataclass(frozen=True)
class KubernetesAccess:
    """kubeconfig: a path, or the content as a secret output. context: empty for the kubeconfig's current one.

    waits: whether nodes may still be on their way (a pool that the same update makes), so that a check waits for them.
    depends_on: what has to exist before anything can be put into the cluster.
    """

    kubeconfig: pulumi.Input[str]
    context: str = ""
    waits: bool = False
    depends_on: list[pulumi.Resource] = field(default_factory=list)
