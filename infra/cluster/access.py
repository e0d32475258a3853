"""How a program reaches a Kubernetes cluster, whoever made it."""

from dataclasses import dataclass, field
from typing import Any

import pulumi


@dataclass(frozen=True)
class KubernetesAccess:
    """kubeconfig: a path, or the content as a secret output. context: empty for the current one of such content.

    context_chosen: false when `context` is only the kubeconfig's current one at this moment, which anybody may change.
    owner: the stack whose output `kubeconfig` is the content; empty for a path. waits: whether nodes may still be on
    their way (a pool that the same update makes), so that a check waits for them. depends_on: what has to exist before
    anything can be put into the cluster.
    """

    kubeconfig: pulumi.Input[str]
    context: str = ""
    context_chosen: bool = True
    owner: str = ""
    waits: bool = False
    depends_on: list[pulumi.Resource] = field(default_factory=list)

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs by which a resource of our own provider finds the cluster (infra/provider/kubernetes_api.py)."""
        return {"kubeconfig": self.kubeconfig, "context": self.context}

    def after_it(self, opts: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
        """`opts` of a resource that looks into the cluster: made after it, gone before it."""
        return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=self.depends_on))
