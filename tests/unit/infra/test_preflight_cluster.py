"""What else the checks find: release, KubeRay, network, storage, monitoring, permissions; and what they let pass."""

from typing import Any

import pytest

from infra.provider.preflight import kuberay, names, network, permissions, services
from infra.provider.preflight.facts import Access, Facts
from serving.versions import versions

Json = dict[str, Any]
PINNED = versions()["kuberay"]["version"]
INPUTS: Json = {
    "stack": "pd-2p1d",
    "namespace": "space",
    "rayOperator": {"install": "preinstalled", "version": PINNED, "namespace": "kuberay", "stack": ""},
    "network": "host",
    "attachments": [],
    "hostDevices": {},
    "nicClusterPolicy": False,
    "monitoring": "none",
    "needsStorageClass": True,
    "storageClass": "",
    "persistentVolume": False,
}
CHART = {"rayOperator": {**INPUTS["rayOperator"], "install": "chart"}}
RAY = {"ray.io/v1": {"rayservices", "rayclusters", "rayjobs"}}


def facts(**changes: Any) -> Facts:
    return Facts(**{"user": "me", "version": {"major": "1", "minor": "34"}, **changes})


def schema(*fields: str) -> Json:
    spec: Json = {"properties": {"rayClusterConfig": {"properties": {}}}}
    for name in fields:
        where = spec
        *parents, last = name.split(".")
        for parent in parents:
            where = where["properties"][parent]
        where["properties"][last] = {"type": "object"}
    return {"components": {"schemas": {"io.ray.v1.RayService": {"properties": {"spec": spec}}}}}


FULL = schema("upgradeStrategy", "excludeHeadPodFromServeSvc", "rayClusterConfig.authOptions")


def operator(image: str = f"quay.io/kuberay/operator:v{PINNED}", where: str = "ray-system", *args: str) -> Json:
    container = {"image": image, "args": list(args)}
    return {"metadata": {"namespace": where}, "spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize(("major", "minor"), [("1", "25"), ("1", "34+"), ("2", "0")])
def test_a_release_that_does(major: str, minor: str) -> None:
    assert services.version(INPUTS, facts(version={"major": major, "minor": minor})) == []


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ({"major": "1", "minor": "24+"}, "Kubernetes v1.24 is too old, KubeRay's definitions need v1.25"),
        ({}, "does not say which Kubernetes it is"),
        ({"major": "", "minor": ""}, "does not say which Kubernetes it is"),
    ],
)
def test_a_release_that_does_not(version: Json, words: str) -> None:
    [line] = services.version(INPUTS, facts(version=version))
    assert words in line


@pytest.mark.parametrize(
    "seen",
    [
        {"operators": [operator()]},
        {"operators": []},
        {"operators": None},
        {"operators": [operator("registry.example/kuberay@sha256:" + "0" * 64)]},
        {"operators": [operator(f"registry.example:5000/kuberay:{PINNED}")]},
        {"operators": [operator("x:v0.1", "a", "--watch-namespace", "a"), operator()]},
        {"operators": [operator(f"o:v{PINNED}", "a", "--watch-namespace=b,space")]},
        {"operators": [operator()], "ray_schema": None},
    ],
)
def test_a_kuberay_that_does(seen: Json) -> None:
    assert kuberay.lacks(INPUTS, facts(**{"served": RAY, "ray_schema": FULL, **seen})) == []


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"served": {}}, f"does not serve rayservices and rayclusters of ray.io/v1; install KubeRay {PINNED}"),
        ({"served": {"ray.io/v1": {"rayclusters"}}}, "does not serve rayservices"),
        (
            {"ray_schema": schema()},
            "not know upgradeStrategy, excludeHeadPodFromServeSvc, rayClusterConfig.authOptions",
        ),
        ({"ray_schema": schema("upgradeStrategy", "excludeHeadPodFromServeSvc")}, "know rayClusterConfig.authOptions,"),
        (
            {"operators": [operator("o:v1.4")]},
            f"the operator is 1.4 in namespace ray-system, this stack needs {PINNED}",
        ),
        (
            {"operators": [operator(f"o:v{PINNED}", "a", "--watch-namespace", "b,c")]},
            "no operator looks after namespace space, only those in a (b, c)",
        ),
    ],
)
def test_a_kuberay_that_does_not(seen: Json, words: str) -> None:
    [line] = kuberay.lacks(INPUTS, facts(**{"served": RAY, "ray_schema": FULL, **seen}))
    assert words in line


def test_who_puts_kuberay_right() -> None:
    shared = {"rayOperator": {**INPUTS["rayOperator"], "stack": "mi325x-4node"}}
    [line] = kuberay.lacks({**INPUTS, **shared}, facts(served={}))
    assert "run pulumi up in stack mi325x-4node" in line
    assert "rayOperator.install: chart" in kuberay.lacks(INPUTS, facts(served={}))[0]


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"operators": []}, ""),
        ({"operators": None}, ""),
        ({"operators": [operator(where="kuberay")], "own_operator": "kuberay"}, ""),
        ({"operators": [operator("o:v1", "elsewhere", "--watch-namespace", "other")]}, ""),
        ({"operators": [operator()]}, "set rayOperator.install: preinstalled"),
        (
            {"operators": [operator(f"o:v{PINNED}", "elsewhere", "--watch-namespace", "space")]},
            "fight over the RayService",
        ),
        ({"operators": [operator(where="kuberay")]}, f"(version {PINNED}), and two would fight"),
        ({"operators": [operator("o:v1", "kuberay", "--watch-namespace", "other")]}, "set rayOperator.namespace"),
        ({"operators": [operator()], "own_operator": "kuberay"}, "in namespace ray-system already"),
    ],
)
def test_an_operator_beside_the_one_that_is_to_be_installed(seen: Json, words: str) -> None:
    lines = kuberay.lacks({**INPUTS, **CHART}, facts(**seen))
    assert len(lines) == bool(words)
    assert words in "".join(lines)


def test_an_operator_that_is_not_seen_is_only_noted() -> None:
    assert "may not list deployments" in kuberay.notes(INPUTS, facts(operators=None))[0]
    assert "none with its usual label" in kuberay.notes(INPUTS, facts(operators=[]))[0]
    assert kuberay.notes(INPUTS, facts(operators=[operator()])) == []
    assert kuberay.notes({**INPUTS, **CHART}, facts(operators=[])) == []


SRIOV = {"network": "sriov", "attachments": ["rdma-vf", "rdma-vf", "net/other", "rdma-vf@net1"]}
MULTUS = {"network": "multus", "attachments": [], "hostDevices": {"fabric0": "eth1"}}
NADS = {"k8s.cni.cncf.io/v1": {"network-attachment-definitions"}}
POLICIES = {"mellanox.com/v1alpha1": {"nicclusterpolicies"}}


def policy(stack: str = "") -> Json:
    return {
        "metadata": {"name": "nic-cluster-policy", "labels": {"app.kubernetes.io/instance": stack} if stack else None}
    }


@pytest.mark.parametrize(
    ("inputs", "seen", "words"),
    [
        ({"network": "host"}, {}, ""),
        ({"network": "pod"}, {}, ""),
        (SRIOV, {}, "network sriov needs; install Multus"),
        (MULTUS, {}, "network multus needs"),
        (MULTUS, {"served": NADS}, ""),
        (SRIOV, {"served": NADS}, "no NetworkAttachmentDefinition space/rdma-vf, net/other; make it"),
        (SRIOV, {"served": NADS, "attachments": {"space/rdma-vf"}}, "no NetworkAttachmentDefinition net/other;"),
        (SRIOV, {"served": NADS, "attachments": {"space/rdma-vf", "net/other"}}, ""),
        ({**MULTUS, "attachments": ["fabric0", "fabric1"]}, {"served": NADS}, "Definition space/fabric1;"),
        ({"nicClusterPolicy": True}, {}, "install NVIDIA's network operator"),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": []}, ""),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": None}, ""),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": [policy("pd-2p1d")]}, ""),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": [policy("other")]}, "somebody else's"),
        ({"nicClusterPolicy": True}, {"served": POLICIES, "nic_policies": [policy()]}, "NicClusterPolicy nic-cluster-"),
        ({"nicClusterPolicy": False}, {"served": POLICIES, "nic_policies": [policy()]}, ""),
    ],
)
def test_network(inputs: Json, seen: Json, words: str) -> None:
    lines = network.lacks({**INPUTS, **inputs}, facts(**seen))
    assert len(lines) == bool(words)
    assert words in "".join(lines)


def test_attachments_that_cannot_be_looked_at_are_a_matter_of_permissions() -> None:
    hidden = [Access("k8s.cni.cncf.io", "network-attachment-definitions", "get", "net")]
    seen = facts(served=NADS, attachments={"space/rdma-vf"}, denied=hidden)
    inputs = {**INPUTS, **SRIOV}
    assert hidden[0] in permissions.needed(inputs)
    assert network.lacks(inputs, seen) == []
    assert "may not get network-attachment-definitions.k8s.cni.cncf.io in namespace net" in "".join(
        permissions.lacks(inputs, seen)
    )


def storage_class(name: str, **annotations: str) -> Json:
    return {"metadata": {"name": name, "annotations": {f"storageclass.{k}": v for k, v in annotations.items()} or None}}


DEFAULT = {"kubernetes.io/is-default-class": "true"}


@pytest.mark.parametrize(
    ("wanted", "classes", "words"),
    [
        ("", [storage_class("block", **DEFAULT)], ""),
        ("", [storage_class("block", **{"beta.kubernetes.io/is-default-class": "true"})], ""),
        ("", None, ""),
        ("", [], "no default StorageClass, there is none at all"),
        ("", [storage_class("b"), storage_class("a")], "no default StorageClass, there are: a, b;"),
        ("", [storage_class("b", **{"kubernetes.io/is-default-class": "false"})], "no default StorageClass"),
        ("nfs", [storage_class("nfs")], ""),
        ("nfs", [storage_class("block", **DEFAULT)], "no StorageClass 'nfs', there are: block;"),
    ],
)
def test_storage(wanted: str, classes: list[Json] | None, words: str) -> None:
    lines = services.storage({**INPUTS, "storageClass": wanted}, facts(storage_classes=classes))
    assert len(lines) == bool(words)
    assert words in "".join(lines)
    assert services.storage({**INPUTS, "needsStorageClass": False}, facts(storage_classes=[])) == []


def test_monitoring() -> None:
    wanted = {**INPUTS, "monitoring": "prometheus-operator"}
    assert services.monitoring(wanted, facts(served={"monitoring.coreos.com/v1": {"podmonitors"}})) == []
    assert "install the Prometheus operator" in services.monitoring(wanted, facts())[0]
    assert services.monitoring({**INPUTS, "monitoring": "annotations"}, facts()) == []


def test_permissions_are_one_line_for_each_api_group() -> None:
    denied = [
        Access("ray.io", "rayservices", "create", "space"),
        Access("", "pods/log", "get", "space"),
        Access("ray.io", "rayservices", "delete", "space"),
        Access("", "namespaces", "create", ""),
        Access("", "pods", "list", "space"),
    ]
    core, ray = permissions.lacks(INPUTS, facts(denied=denied))
    assert "me may not create namespaces in the whole cluster; list pods and get pods/log in namespace space;" in core
    assert "me may not create, delete rayservices.ray.io in namespace space;" in ray
    alike = [Access("", name, verb, "space") for name in ("secrets", "services") for verb in ("get", "list")]
    assert (
        "may not get, list secrets, services in namespace space;" in permissions.lacks(INPUTS, facts(denied=alike))[0]
    )
    assert permissions.lacks(INPUTS, facts()) == []


def test_a_namespace_that_is_there_need_not_be_made() -> None:
    denied = [Access("", "namespaces", "create", "")]
    assert permissions.lacks(INPUTS, facts(denied=denied, namespace={"metadata": {}})) == []
    assert len(permissions.lacks(INPUTS, facts(denied=denied, namespace=None))) == 1


@pytest.mark.parametrize(
    ("inputs", "access"),
    [
        ({"persistentVolume": True}, Access("", "persistentvolumes", "create", "")),
        (MULTUS, Access("k8s.cni.cncf.io", "network-attachment-definitions", "create", "space")),
        ({"nicClusterPolicy": True}, Access("mellanox.com", "nicclusterpolicies", "patch", "")),
        ({"monitoring": "prometheus-operator"}, Access("monitoring.coreos.com", "podmonitors", "create", "space")),
        (CHART, Access("apiextensions.k8s.io", "customresourcedefinitions", "create", "")),
        (CHART, Access("apps", "deployments", "create", "kuberay")),
        (CHART, Access("rbac.authorization.k8s.io", "roles", "create", "space")),
    ],
)
def test_permissions_that_only_some_stacks_need(inputs: Json, access: Access) -> None:
    assert access not in permissions.needed(INPUTS)
    assert access in permissions.needed({**INPUTS, **inputs})


def test_nothing_is_asked_twice() -> None:
    same = {"rayOperator": {**CHART["rayOperator"], "namespace": "space"}}
    asked = permissions.needed({**INPUTS, **same})
    assert len(asked) == len(set(asked))
    assert Access("ray.io", "rayservices", "patch", "space") in asked
    assert Access("", "pods/exec", "create", "space") in asked


def test_a_namespace_on_its_way_out() -> None:
    held = {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "1 object has finalizers"}
    going = {"status": {"phase": "Terminating", "conditions": [held]}}
    [line] = services.namespace(INPUTS, facts(namespace=going))
    assert "is being deleted (1 object has finalizers)" in line
    assert services.namespace(INPUTS, facts(namespace={"status": {"phase": "Active"}})) == []
    assert services.namespace(INPUTS, facts(namespace=None)) == []


def labelled(instance: str, **spec: str) -> Json:
    labels = {"app.kubernetes.io/name": "pd-mi325x", "app.kubernetes.io/instance": instance}
    return {"metadata": {"labels": labels}, "spec": spec}


def test_nothing_of_somebody_else_is_taken_over() -> None:
    """Server-side apply would write into it, and `destroy` delete it."""
    mine = {"ConfigMap benchmark-target": labelled(INPUTS["stack"]), "CronJob benchmark": None}
    assert names.lacks(INPUTS, facts(named=mine)) == []
    theirs = {**mine, "Service llm-metrics": {"metadata": {}}, "CronJob benchmark": labelled("other")}
    [line] = names.lacks(INPUTS, facts(named=theirs))
    assert "Service llm-metrics, CronJob benchmark" in line or "CronJob benchmark, Service llm-metrics" in line
    assert "pd-mi325x:namespace" in line


def test_a_namespace_of_another_stack() -> None:
    [line] = names.lacks(INPUTS, facts(namespace=labelled("other")))
    assert "belongs to stack other" in line
    assert names.lacks(INPUTS, facts(namespace=labelled(INPUTS["stack"]))) == []
    assert names.lacks(INPUTS, facts(namespace={"metadata": {"labels": {"team": "a"}}})) == []


def test_a_claim_keeps_its_storage_class() -> None:
    claim = {"PersistentVolumeClaim results": labelled(INPUTS["stack"], storageClassName="fast")}
    assert names.lacks({**INPUTS, "storageClass": ""}, facts(named=claim)) == []
    assert names.lacks({**INPUTS, "storageClass": "fast"}, facts(named=claim)) == []
    [line] = names.lacks({**INPUTS, "storageClass": "slow"}, facts(named=claim))
    assert "'fast'" in line


def test_every_fixed_name_is_looked_at() -> None:
    """What the program makes under a name of its own is what the check asks for."""
    looked_at = {tuple(name.split()) for name in names.paths(INPUTS)}
    assert {("RayService", "llm"), ("CronJob", "benchmark"), ("PersistentVolumeClaim", "results")} <= looked_at
