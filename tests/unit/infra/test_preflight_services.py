"""What a stack needs of Kubernetes itself: its release, a storage class, monitoring, a namespace that stays."""

import pytest
from preflight_facts import INPUTS, Json, facts

from infra.provider.preflight import services


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


def test_monitoring() -> None:
    wanted = {**INPUTS, "monitoring": "prometheus-operator"}
    assert services.monitoring(wanted, facts(served={"monitoring.coreos.com/v1": {"podmonitors"}})) == []
    assert "install the Prometheus operator" in services.monitoring(wanted, facts())[0]
    assert services.monitoring({**INPUTS, "monitoring": "annotations"}, facts()) == []


def test_a_namespace_on_its_way_out() -> None:
    held = {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "1 object has finalizers"}
    going = {"status": {"phase": "Terminating", "conditions": [held]}}
    [line] = services.namespace(INPUTS, facts(namespace=going))
    assert "is being deleted (1 object has finalizers)" in line
    assert services.namespace(INPUTS, facts(namespace={"status": {"phase": "Active"}})) == []
    assert services.namespace(INPUTS, facts(namespace=None)) == []
