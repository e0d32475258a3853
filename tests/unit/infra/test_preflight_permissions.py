"""What a user must be allowed to do for a stack."""

import pytest
from preflight_facts import CHART, INPUTS, MULTUS, Json, facts

from infra.provider.preflight import permissions
from infra.provider.preflight.facts import Permission


def test_permissions_are_one_line_for_each_api_group() -> None:
    denied = [
        Permission("ray.io", "rayservices", "create", "space"),
        Permission("", "pods/log", "get", "space"),
        Permission("ray.io", "rayservices", "delete", "space"),
        Permission("", "namespaces", "create", ""),
        Permission("", "pods", "list", "space"),
    ]
    core, ray = permissions.lacks(INPUTS, facts(denied=denied))
    assert "me may not create namespaces in the whole cluster; list pods and get pods/log in namespace space;" in core
    assert "me may not create, delete rayservices.ray.io in namespace space;" in ray
    alike = [Permission("", name, verb, "space") for name in ("secrets", "services") for verb in ("get", "list")]
    assert (
        "may not get, list secrets, services in namespace space;" in permissions.lacks(INPUTS, facts(denied=alike))[0]
    )
    assert permissions.lacks(INPUTS, facts()) == []


def test_a_namespace_that_is_there_need_not_be_made() -> None:
    denied = [Permission("", "namespaces", "create", "")]
    assert permissions.lacks(INPUTS, facts(denied=denied, namespace={"metadata": {}})) == []
    assert len(permissions.lacks(INPUTS, facts(denied=denied, namespace=None))) == 1
    there: Json = {"metadata": {}}
    chart = {**INPUTS, **CHART}  # the operator's own has to be there as well
    assert len(permissions.lacks(chart, facts(denied=denied, namespace=there))) == 1
    assert permissions.lacks(chart, facts(denied=denied, namespace=there, operator_namespace=there)) == []


@pytest.mark.parametrize(
    ("inputs", "access"),
    [
        ({"persistentVolume": True}, Permission("", "persistentvolumes", "create", "")),
        ({"inspectsFabric": True}, Permission("apps", "daemonsets", "create", "space")),
        (MULTUS, Permission("k8s.cni.cncf.io", "network-attachment-definitions", "create", "space")),
        ({"nicClusterPolicy": True}, Permission("mellanox.com", "nicclusterpolicies", "patch", "")),
        ({"monitoring": "prometheus-operator"}, Permission("monitoring.coreos.com", "podmonitors", "create", "space")),
        (CHART, Permission("apiextensions.k8s.io", "customresourcedefinitions", "create", "")),
        (CHART, Permission("apps", "deployments", "create", "kuberay")),
        (CHART, Permission("rbac.authorization.k8s.io", "roles", "create", "space")),
        (CHART, Permission("apps", "replicasets", "watch", "kuberay")),
        (CHART, Permission("", "endpoints", "list", "kuberay")),
        (CHART, Permission("", "namespaces", "delete", "kuberay")),
        (CHART, Permission("", "namespaces", "watch", "")),
        ({"persistentVolume": True}, Permission("", "pods", "watch", "space")),
    ],
)
def test_permissions_that_only_some_stacks_need(inputs: Json, access: Permission) -> None:
    assert access not in permissions.needed(INPUTS)
    assert access in permissions.needed({**INPUTS, **inputs})


def test_nothing_is_asked_twice() -> None:
    same = {"rayOperator": {**CHART["rayOperator"], "namespace": "space"}}
    asked = permissions.needed({**INPUTS, **same})
    assert len(asked) == len(set(asked))
    assert Permission("ray.io", "rayservices", "patch", "space") in asked
    assert Permission("", "pods/exec", "create", "space") in asked
    assert Permission("", "namespaces", "delete", "space") not in asked, "the stack's own namespace stays"
