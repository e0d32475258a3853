"""A cluster that somebody else made: a kubeconfig on this machine."""

import os
from pathlib import Path

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.provider.kubeconfig import current_context
from serving.cluster import ExistingCluster
from serving.errors import ConfigError


def existing_cluster(cluster: ExistingCluster) -> KubernetesAccess:
    """The file by its path: what it holds stays out of the state. Whether it is good, the pre-flight says.

    But for the name of its current context, which is no secret: recorded, so that `pulumi destroy` does not go to
    another cluster, find nothing there, and call that success, because somebody typed `kubectl config use-context`.
    """
    named = cluster.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    if os.pathsep in named:
        raise ConfigError("pd-mi325x:cluster.kubeconfig", f"{named} is a list of files", "name the one to use")
    # From the project's folder, where people type `pulumi`: the program itself runs in infra/.
    file = str(pulumi.get_root_directory() / Path(named).expanduser())
    context = cluster.context or current_context(file)
    return KubernetesAccess(file, context, context_chosen=bool(cluster.context))
