"""Reads the facts from the API: everything at once, because each request to a far cluster takes about 0.1 s."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from infra.provider.kubeconfig import CONNECTIONS
from infra.provider.kubernetes_api import Forbidden, Json, KubernetesApi
from infra.provider.preflight import names
from infra.provider.preflight.facts import ATTACHMENTS, NVIDIA, PROMETHEUS, RAY, Facts
from infra.provider.preflight.network import foreign_attachments
from infra.provider.preflight.permissions import needed
from infra.provider.resource import Properties

_SCHEDULED = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
# The label that KubeRay's chart gives the operator's deployment, and the one that its kustomization gives.
_OPERATOR = "app.kubernetes.io/name in (kuberay-operator, kuberay)"


def gather(api: KubernetesApi, inputs: Properties, own_operator: str) -> Facts:
    """Look at the cluster. Raises ResourceError: unreachable, or credentials that it does not accept."""
    version = api.get("/version") or {}  # alone: an unreachable API shall be one failure after one time limit
    with ThreadPoolExecutor(CONNECTIONS) as pool:

        def ask[Answer](call: Callable[..., Answer], *args: Any, **query: Any) -> Future[Answer | None]:
            return pool.submit(_if_allowed, call, *args, **query)

        nodes = ask(api.list, "/api/v1/nodes")
        pods = ask(api.list, "/api/v1/pods", fieldSelector=_SCHEDULED)
        # OpenAPI and not the CRD: every user may read it, and the schema in it is the one that is enforced.
        schema = ask(api.get, f"/openapi/v3/apis/{RAY}")
        operators = ask(api.list, "/apis/apps/v1/deployments", labelSelector=_OPERATOR)
        namespace = ask(api.get, f"/api/v1/namespaces/{inputs['namespace']}")
        operator_home = ask(api.get, f"/api/v1/namespaces/{inputs['rayOperator']['namespace']}")
        groups = {group: ask(api.get, f"/apis/{group}") for group in (RAY, ATTACHMENTS, NVIDIA, PROMETHEUS)}
        policies = ask(api.list, f"/apis/{NVIDIA}/nicclusterpolicies")
        classes = ask(api.list, "/apis/storage.k8s.io/v1/storageclasses")
        attachments = {name: ask(api.get, _attachment_path(name)) for name in foreign_attachments(inputs)}
        named = {name: ask(api.get, path) for name, path in names.paths(inputs).items()}
        pull_secret = ask(api.get, f"/api/v1/namespaces/{inputs['namespace']}/secrets/{inputs['pullSecret']}")
        reviews = {access: pool.submit(api.allowed, *access) for access in needed(inputs)}
        return Facts(
            user=api.user,
            version=version,
            nodes=nodes.result(),
            pods=pods.result(),
            served={group: _resources(answer.result()) for group, answer in groups.items()},
            ray_schema=schema.result(),
            operators=operators.result(),
            own_operator=own_operator,
            namespace=namespace.result(),
            operator_namespace=operator_home.result(),
            named={name: answer.result() for name, answer in named.items()},
            attachments={name for name, answer in attachments.items() if answer.result() is not None},
            pull_secret=pull_secret.result() if inputs["pullSecret"] else None,
            nic_policies=policies.result(),
            storage_classes=classes.result(),
            denied=[access for access, answer in reviews.items() if not answer.result()],
        )


def _attachment_path(name: str) -> str:
    namespace, _, name = name.partition("/")
    return f"/apis/{ATTACHMENTS}/namespaces/{namespace}/network-attachment-definitions/{name}"


def _if_allowed[Answer](call: Callable[..., Answer], *args: Any, **query: Any) -> Answer | None:
    try:
        return call(*args, **query)
    except Forbidden:
        return None


def _resources(answer: Json | None) -> set[str]:
    return {resource["name"] for resource in (answer or {}).get("resources", [])}
