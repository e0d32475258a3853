"""Pods that KubeRay could not make, in the API server's words, and whether trying again can help."""

import re
from typing import Any

from infra.provider.kubernetes_api import KubernetesApi
from infra.provider.resource import ResourceError

# Of a name that is another one for each attempt: the same refusal shall be told once.
_POD = re.compile(r'\bpods? "[^"]*" is ', re.IGNORECASE)
# The marker that KubeRay puts on a line of its own in front (v1.6, raycluster_controller.go: errors.Join).
_MARKER = re.compile(r"^(Failed\w+)\s+")
_POD_SECURITY = re.compile(r'violates PodSecurity "([^":]*)')
_LEVEL = "pod-security.kubernetes.io/enforce"


def refused_pods(cluster: dict[str, Any]) -> str:
    """What a RayCluster says of it in a line: a quota, an admission rule, an invalid pod; empty while nothing fails."""
    conditions = cluster.get("status", {}).get("conditions") or []
    failed = next((c for c in conditions if c["type"] == "ReplicaFailure" and c["status"] == "True"), {})
    return _MARKER.sub(r"\1: ", " ".join(_POD.sub("pod is ", str(failed.get("message", ""))).split()))


def end_if_for_good(api: KubernetesApi, namespace: str, name: str, told: str) -> None:
    """Raises ResourceError for a refusal that no other attempt mends, since each makes the same pod."""
    if "pod is invalid: " in told:
        raise ResourceError(f"KubeRay cannot make the pods of RayService {namespace}/{name}: {told}; correct that")
    if (level := _POD_SECURITY.search(told)) and _enforced(api, namespace) in ("", level[1]):
        raise ResourceError(
            f"KubeRay cannot make the pods of RayService {namespace}/{name}: {told}; see that the namespace allows "
            f"them ({_LEVEL}: privileged)"
        )


def _enforced(api: KubernetesApi, namespace: str) -> str:
    """The namespace's own level. Another one than a refusal names is newer: KubeRay has not tried again yet."""
    there = api.get(f"/api/v1/namespaces/{namespace}") or {}
    return (there.get("metadata", {}).get("labels") or {}).get(_LEVEL, "")
