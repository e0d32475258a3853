"""Whether the kubeconfig and the context that the last update recorded still lead into a cluster."""

import os
import shlex

from infra.provider.kubeconfig import contexts, is_content, leads_nowhere
from infra.provider.resource import Properties, ResourceError

# Lets Pulumi's Kubernetes provider forget objects of a cluster that it does not reach (its kubernetes_provider.go).
_FORGET = "PULUMI_K8S_DELETE_UNREACHABLE"


def end_if_lost(outputs: Properties) -> None:
    """Raises ResourceError before anything is deleted through a file, or a context of it, that is not there any more.

    Pulumi's Kubernetes provider would advise to set _FORGET, which leaves all of the stack running. Who has set it
    knows that the cluster is gone for good.
    """
    file, context = outputs["kubeconfig"], outputs["context"]
    if is_content(file) or os.environ.get(_FORGET) == "true":
        return
    try:
        there = contexts(file)
    except ResourceError as error:
        raise ResourceError(
            f"{str(error).partition('; ')[0]}, and the last `pulumi up` recorded it; put it back, or run `pulumi up` "
            "with another one (cluster.kubeconfig) first"
        ) from None
    if context and context not in there:
        rename = shlex.join(["kubectl", "--kubeconfig", file, "config", "rename-context"])
        raise ResourceError(
            f"context {context!r} is not in kubeconfig {file}, and the last `pulumi up` recorded it; put it back: "
            f"`{rename} NAME {shlex.quote(context)}` if it was renamed (there are: {', '.join(there) or 'none'})"
        )
    if why := leads_nowhere(file, context):
        raise ResourceError(why)
