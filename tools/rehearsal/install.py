"""What a cluster has before anybody uses it: storage classes and, with the operator, KubeRay's resource definitions."""

from typing import Any

import yaml
from kubernetes import client

from tools.rehearsal.binaries import kuberay_crds
from tools.rehearsal.volumes import csi_driver, storage_classes

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CREATED = 201


def storage(api: client.ApiClient) -> None:
    """The storage classes of volumes.py."""
    storage: Any = client.StorageV1Api(api)
    storage.create_csi_driver(csi_driver())
    for storage_class in storage_classes():
        storage.create_storage_class(storage_class)


def kuberay_definitions() -> list[dict[str, Any]]:
    """KubeRay's custom resource definitions, each with the one version that it stores.

    The older version that they also serve repeats the whole pod schema and doubles the API server's work: 7 s of 14 s
    on two busy cores.
    """
    definitions = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in kuberay_crds()]
    for definition in definitions:
        versions = definition["spec"]["versions"]
        definition["spec"]["versions"] = [version for version in versions if version["storage"]]
    return definitions


def define(api: client.ApiClient, definitions: list[dict[str, Any]]) -> None:
    """Post them as they are: turned into the client's models they would take 5 s."""
    for definition in definitions:
        request = api.param_serialize("POST", _CRDS, body=definition, auth_settings=["BearerToken"])
        answer = api.call_api(*request)
        if answer.status != _CREATED:
            raise client.ApiException(status=answer.status, reason=definition["metadata"]["name"])


def served(api: client.ApiClient) -> bool:
    """Whether the API server serves all of them."""
    version = client.CustomObjectsApi(api)
    try:
        for plural in ("rayclusters", "rayjobs", "rayservices"):
            version.list_cluster_custom_object("ray.io", "v1", plural)
    except client.ApiException:
        return False
    return True
