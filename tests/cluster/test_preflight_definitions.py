"""The checks of what a stack needs installed, against a real API server: definitions, operators, a storage class."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import client

from infra.provider.cluster_preflight import ClusterPreflight
from tests.cluster.conftest import Check, Json
from tests.cluster.waiting import eventually


@contextmanager
def changed_definition(api: client.ApiClient, name: str, change: Callable[[Any], None]) -> Iterator[None]:
    """KubeRay's definition `name`, its version v1 changed for a while."""
    extensions: Any = client.ApiextensionsV1Api(api)

    def put(change: Callable[[Any], None]) -> None:
        definition: Any = api.sanitize_for_serialization(extensions.read_custom_resource_definition(name))
        change(next(version for version in definition["spec"]["versions"] if version["name"] == "v1"))
        extensions.replace_custom_resource_definition(name, definition)

    kept: Json = {}

    def remember(version: Any) -> None:
        kept.update(json.loads(json.dumps(version)))
        change(version)

    put(remember)
    try:
        yield
    finally:
        put(lambda version: version.update(kept))


def test_a_definition_of_an_older_kuberay(api: client.ApiClient, lacks: Check) -> None:
    def older(version: Any) -> None:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        del spec["rayClusterConfig"]["properties"]["authOptions"]

    with changed_definition(api, "rayservices.ray.io", older):
        line = eventually(lacks, "the API server publishes the schema")
        assert "rayservices.ray.io does not know rayClusterConfig.authOptions" in line
    eventually(lambda: lacks() == "", "the schema is back")


def test_a_definition_that_is_not_served(api: client.ApiClient, lacks: Check) -> None:
    def not_served(version: Any) -> None:
        version["served"] = False

    with changed_definition(api, "rayservices.ray.io", not_served):
        assert "the API does not serve rayservices" in eventually(lacks, "the API server takes it away")
    eventually(lambda: lacks() == "", "it is served again")


def test_operators_that_are_there_already(
    api: client.ApiClient, namespace: str, preflight_inputs: Json, lacks: Check
) -> None:
    apps: Any = client.AppsV1Api(api)
    pinned = preflight_inputs["rayOperator"]["version"]
    chart = {**preflight_inputs["rayOperator"], "install": "chart"}
    assert lacks(rayOperator=chart) == ""
    apps.create_namespaced_deployment(namespace, _operator("older", "v1.4"))
    assert f"the operator is 1.4 in namespace {namespace}, this stack needs {pinned}" in lacks()
    assert f"an operator runs in namespace {namespace} already (version 1.4)" in lacks(rayOperator=chart)
    own = {**chart, "namespace": namespace}
    before = {**preflight_inputs, "rayOperator": own}
    assert ClusterPreflight().check(before, before) == [], "the one that this stack's last update installed"
    apps.create_namespaced_deployment(namespace, _operator("pinned", f"v{pinned}"))
    assert lacks() == ""


def test_other_definitions_that_are_missing(lacks: Check) -> None:
    assert "install Multus" in lacks(network="sriov", attachments=["rdma-vf"])
    assert "install NVIDIA's network operator" in lacks(nicClusterPolicy=True)
    assert "install the Prometheus operator" in lacks(monitoring="prometheus-operator")


def test_attachments_of_somebody_else(api: client.ApiClient, namespace: str, lacks: Check) -> None:
    extensions: Any = client.ApiextensionsV1Api(api)
    objects: Any = client.CustomObjectsApi(api)
    group, plural = "k8s.cni.cncf.io", "network-attachment-definitions"
    extensions.create_custom_resource_definition(_attachment_definition(group, plural))
    try:
        sriov = {"network": "sriov", "attachments": [f"{namespace}/there", "missing"]}
        eventually(lambda: "install Multus" not in lacks(**sriov), "the definition is served")
        body = {"apiVersion": f"{group}/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "there"}}
        eventually(lambda: objects.create_namespaced_custom_object(group, "v1", namespace, plural, body), "it is made")
        assert f"no NetworkAttachmentDefinition {namespace}/missing;" in lacks(**sriov)
        assert lacks(network="sriov", attachments=["there"]) == ""
    finally:
        extensions.delete_custom_resource_definition(f"{plural}.{group}")


def test_no_default_storage_class(api: client.ApiClient, lacks: Check) -> None:
    storage: Any = client.StorageV1Api(api)
    key = "storageclass.kubernetes.io/is-default-class"
    try:
        storage.patch_storage_class("do-block-storage", {"metadata": {"annotations": {key: "false"}}})
        assert "no default StorageClass, there are: do-block-storage, do-block-storage-retain;" in lacks()
        assert lacks(storageClass="do-block-storage-retain") == ""
    finally:
        storage.patch_storage_class("do-block-storage", {"metadata": {"annotations": {key: "true"}}})
    assert "no StorageClass 'nfs'" in lacks(storageClass="nfs")


def _operator(name: str, tag: str) -> Json:
    labels = {"app.kubernetes.io/name": "kuberay-operator", "app.kubernetes.io/instance": name}
    container = {"name": "operator", "image": f"quay.io/kuberay/operator:{tag}"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _attachment_definition(group: str, plural: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": "NetworkAttachmentDefinition"}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
