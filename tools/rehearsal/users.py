"""Users with few rights, for what happens where the cluster's administrator is somebody else."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubernetes import client

_NAMESPACE = "kube-system"  # of their service accounts; it is always there
_SECONDS = 24 * 3600


Rules = Sequence[Mapping[str, Any]]
"""`rules` of an RBAC role: apiGroups, resources, verbs."""


def restricted_token(api: client.ApiClient, name: str, rules: Rules, namespace: str | None) -> str:
    """The token of a new service account `name` that may do what the rules say, in `namespace` or anywhere."""
    core: Any = client.CoreV1Api(api)
    rbac: Any = client.RbacAuthorizationV1Api(api)
    core.create_namespaced_service_account(_NAMESPACE, {"metadata": {"name": name}})
    metadata = {"metadata": {"name": f"rehearsal:{name}"}}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": _NAMESPACE}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "name": f"rehearsal:{name}"}
    if namespace is None:
        rbac.create_cluster_role({**metadata, "rules": list(rules)})
        binding = {**metadata, "subjects": subjects, "roleRef": {**reference, "kind": "ClusterRole"}}
        rbac.create_cluster_role_binding(binding)
    else:
        rbac.create_namespaced_role(namespace, {**metadata, "rules": list(rules)})
        binding = {**metadata, "subjects": subjects, "roleRef": {**reference, "kind": "Role"}}
        rbac.create_namespaced_role_binding(namespace, binding)
    request = {"spec": {"expirationSeconds": _SECONDS}}
    return core.create_namespaced_service_account_token(name, _NAMESPACE, request).status.token
