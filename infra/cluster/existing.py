"""A cluster that somebody else made: a kubeconfig on this machine."""

import os
from pathlib import Path

from infra.cluster.access import KubernetesAccess
from serving.cluster import ExistingCluster
from serving.errors import ConfigError


def existing_cluster(cluster: ExistingCluster) -> KubernetesAccess:
    """The file is named, not read: what it holds stays out of the state. Whether it is good, the pre-flight says."""
    named = cluster.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    if os.pathsep in named:
        raise ConfigError("pd-mi325x:cluster.kubeconfig", f"{named} is a list of files", "name the one to use")
    return KubernetesAccess(kubeconfig=str(Path(named).expanduser().absolute()), context=cluster.context)
