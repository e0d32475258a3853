"""Whether the credentials may do what deploying, measuring and destroying a stack does."""

from collections.abc import Iterable
from itertools import groupby

from infra.provider.preflight.facts import Facts, Permission, operator_apart
from infra.provider.preflight.network import foreign_attachments
from infra.provider.resource import Properties

# What Pulumi's Kubernetes provider does with an object of its own; it applies on the server's side, and waits for
# readiness and for the end by watching.
_MANAGE = ("get", "list", "watch", "create", "patch", "delete")
_APPLY = ("get", "create", "patch")
# What it watches while it waits for something else; a list that is forbidden it waits for without a word and for ever.
_SEE = ("list", "watch")


def needed(inputs: Properties) -> list[Permission]:
    """Everything that will be asked of the API server, apart from what only this check looks at."""
    home, operator = inputs["namespace"], inputs["rayOperator"]
    wanted = [
        *_all("", "namespaces", ("create",)),
        # One that is there belongs to itself: a role inside of it can allow these (apiserver, requestinfo.go).
        *_all("", "namespaces", ("get", "patch"), home),
        *_all("ray.io", "rayservices", _MANAGE, home),
        *_all("ray.io", "rayclusters", ("get",), home),
        *(
            access
            for resource in ("configmaps", "secrets", "services", "persistentvolumeclaims")
            for access in _all("", resource, _MANAGE, home)
        ),
        *_all("batch", "cronjobs", _MANAGE, home),
        *_all("batch", "jobs", _MANAGE, home),
        *_all("", "pods", ("get", "list", "create", "delete"), home),  # the benchmark's, the reader's, the gate's
        *_all("", "pods/log", ("get",), home),
        # The client's websocket is a GET (kubernetes-client/python #2084); older protocols are a POST.
        *_all("", "pods/exec", ("get", "create"), home),
        *_all("", "events", ("list",), home),
        *_all("", "services/proxy", ("get",), home),
    ]
    if inputs["inspectsFabric"]:
        wanted += _all("apps", "daemonsets", _MANAGE, home)
    if inputs["persistentVolume"]:
        wanted += _all("", "persistentvolumes", _MANAGE)
        wanted += _all("", "pods", _SEE, home)  # of the Job that downloads (pulumi-kubernetes, await/job.go)
    for namespace in sorted({name.partition("/")[0] for name in foreign_attachments(inputs)}):
        wanted += _all("k8s.cni.cncf.io", "network-attachment-definitions", ("get",), namespace)
    if inputs["hostDevices"]:
        wanted += _all("k8s.cni.cncf.io", "network-attachment-definitions", _MANAGE, home)
    if inputs["nicClusterPolicy"]:
        wanted += _all("mellanox.com", "nicclusterpolicies", _MANAGE)
    if inputs["monitoring"] == "prometheus-operator":
        wanted += _all("monitoring.coreos.com", "podmonitors", _MANAGE, home)
    if operator["install"] == "chart":
        wanted += _operator(home, operator["namespace"])
    return list(dict.fromkeys(wanted))


def _operator(home: str, where: str) -> list[Permission]:
    """For KubeRay's chart. What is only seen: pulumi-kubernetes, await/deployment.go and await/service.go."""
    wanted = _all("apiextensions.k8s.io", "customresourcedefinitions", _APPLY)
    if where != home:  # a namespace that goes with the stack; its end is watched for, among all there are
        wanted += [*_all("", "namespaces", ("get", "patch", "delete"), where), *_all("", "namespaces", _SEE)]
    for resource in ("serviceaccounts", "services"):
        wanted += _all("", resource, _MANAGE, where)
    wanted += _all("apps", "deployments", _MANAGE, where)
    wanted += _all("apps", "replicasets", _SEE, where)
    for resource in ("pods", "endpoints", "persistentvolumeclaims"):
        wanted += _all("", resource, _SEE, where)
    for namespace in (home, where):
        for resource in ("roles", "rolebindings"):
            wanted += _all("rbac.authorization.k8s.io", resource, _MANAGE, namespace)
    return wanted


def lacks(inputs: Properties, facts: Facts) -> list[str]:
    """One line for each API group in which something is not allowed."""
    all_there = facts.namespace and (facts.operator_namespace or not operator_apart(inputs))
    make = Permission("", "namespaces", "create", "")
    denied = sorted(access for access in facts.denied if not (access == make and all_there))
    return [
        f"permissions: {facts.user} may not {_described(group)}; ask the cluster's administrator for that role"
        for _, group in groupby(denied, key=lambda access: access.group)
    ]


def _described(denied: Iterable[Permission]) -> str:
    """`create, patch rayservices.ray.io and get pods/log in namespace pd-2p1d`."""
    verbs: dict[tuple[str, str], list[str]] = {}  # of a resource in a namespace
    for access in denied:
        verbs.setdefault((access.namespace, _name(access)), []).append(access.verb)
    alike: dict[str, dict[str, list[str]]] = {}  # namespace -> verbs -> resources
    for (namespace, resource), may_not in verbs.items():
        alike.setdefault(namespace, {}).setdefault(", ".join(may_not), []).append(resource)
    return "; ".join(
        " and ".join(f"{may_not} {', '.join(resources)}" for may_not, resources in groups.items())
        + (f" in namespace {namespace}" if namespace else " in the whole cluster")
        for namespace, groups in alike.items()
    )


def _name(access: Permission) -> str:
    return f"{access.resource}.{access.group}" if access.group else access.resource


def _all(group: str, resource: str, verbs: Iterable[str], namespace: str = "") -> list[Permission]:
    return [Permission(group, resource, verb, namespace) for verb in verbs]
