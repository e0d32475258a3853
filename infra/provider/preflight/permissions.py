"""Whether the credentials may do what deploying, measuring and destroying a stack does."""

from collections.abc import Iterable
from itertools import groupby

from infra.provider.preflight.facts import Access, Facts
from infra.provider.preflight.network import foreign_attachments
from infra.provider.resource import Properties

# What Pulumi's Kubernetes provider does with an object of its own; it applies on the server's side, and waits for
# readiness and for the end by watching.
_MANAGE = ("get", "list", "watch", "create", "patch", "delete")
_APPLY = ("get", "create", "patch")


def needed(inputs: Properties) -> list[Access]:
    """Everything that will be asked of the API server, apart from what only this check looks at."""
    home, operator = inputs["namespace"], inputs["rayOperator"]
    wanted = [
        *_all("", "namespaces", ("create",)),
        # One that is there belongs to itself: a role inside of it can allow these (apiserver, requestinfo.go).
        *_all("", "namespaces", ("get", "patch"), home),
        *_all("ray.io", "rayservices", _MANAGE, home),
        *(
            access
            for resource in ("configmaps", "secrets", "services", "persistentvolumeclaims")
            for access in _all("", resource, _MANAGE, home)
        ),
        *_all("batch", "cronjobs", _MANAGE, home),
        *_all("batch", "jobs", _MANAGE, home),
        *_all("", "pods", ("get", "list"), home),
        *_all("", "pods/log", ("get",), home),
        *_all("", "pods/exec", ("create",), home),
        *_all("", "services/proxy", ("get",), home),
    ]
    if inputs["persistentVolume"]:
        wanted += _all("", "persistentvolumes", _MANAGE)
    for namespace in sorted({name.partition("/")[0] for name in foreign_attachments(inputs)}):
        wanted += _all("k8s.cni.cncf.io", "network-attachment-definitions", ("get",), namespace)
    if inputs["hostDevices"]:
        wanted += _all("k8s.cni.cncf.io", "network-attachment-definitions", _MANAGE, home)
    if inputs["nicClusterPolicy"]:
        wanted += _all("mellanox.com", "nicclusterpolicies", _MANAGE)
    if inputs["monitoring"] == "prometheus-operator":
        wanted += _all("monitoring.coreos.com", "podmonitors", _MANAGE, home)
    if operator["install"] == "chart":
        wanted += _all("apiextensions.k8s.io", "customresourcedefinitions", _APPLY)
        for resource in ("serviceaccounts", "services"):
            wanted += _all("", resource, _MANAGE, operator["namespace"])
        wanted += _all("apps", "deployments", _MANAGE, operator["namespace"])
        for namespace in (home, operator["namespace"]):
            for resource in ("roles", "rolebindings"):
                wanted += _all("rbac.authorization.k8s.io", resource, _MANAGE, namespace)
    return list(dict.fromkeys(wanted))


def lacks(inputs: Properties, facts: Facts) -> list[str]:
    """One line for each API group in which something is not allowed."""
    there = Access("", "namespaces", "create", "")
    denied = sorted(access for access in facts.denied if not (access == there and facts.namespace))
    return [
        f"permissions: {facts.user} may not {_described(group)}; ask the cluster's administrator for that role"
        for _, group in groupby(denied, key=lambda access: access.group)
    ]


def _described(denied: Iterable[Access]) -> str:
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


def _name(access: Access) -> str:
    return f"{access.resource}.{access.group}" if access.group else access.resource


def _all(group: str, resource: str, verbs: Iterable[str], namespace: str = "") -> list[Access]:
    return [Access(group, resource, verb, namespace) for verb in verbs]
