"""The checks before a deployment against a real API server: real taints, requests, permissions and definitions."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from infra.provider.cluster_preflight import ClusterPreflight
from infra.provider.resource import Operation, ResourceError
from serving.versions import versions
from tests.cluster.conftest import ClusterShell
from tests.cluster.deployment import write_stack
from tests.cluster.waiting import eventually
from tests.shell import assert_one_clear_line
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.nodes import add_nodes, gpu_node, remove_nodes

Json = dict[str, Any]
Check = Callable[..., str]
NODES = 4  # with GPUs, in the session's cluster
POOL = "doks.digitalocean.com/node-pool"


@pytest.fixture
def inputs(cluster: SimulatedCluster, namespace: str) -> Json:
    """A stack of DOKS nodes that takes all of them, as infra/cluster_preflight.py describes it to the provider."""
    return {
        "kubeconfig": str(cluster.outside_kubeconfig),
        "context": "",
        "stack": "pd-test",
        "namespace": namespace,
        "wait": False,
        "timeoutSeconds": 60,
        "nodes": NODES,
        "gpuResource": "amd.com/gpu",
        "gpusPerNode": 8,
        "engineCpu": "132",
        "engineMemory": "1062Gi",
        "rdmaResources": {f"rdma/fabric{nic}": 1 for nic in range(8)},
        "tolerations": [{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeSelector": {POOL: "mi325x"},
        "systemNodeSelector": {POOL: "system"},
        "headCpu": "4",
        "headMemory": "10Gi",
        "rayOperator": {
            "install": "preinstalled",
            "version": versions()["kuberay"]["version"],
            "namespace": "kuberay",
            "stack": "",
        },
        "network": "host",
        "attachments": [],
        "hostDevices": {},
        "nicClusterPolicy": False,
        "monitoring": "none",
        "needsStorageClass": True,
        "storageClass": "",
        "persistentVolume": False,
    }


@pytest.fixture
def lacks(inputs: Json) -> Check:
    """All lines of one check, with these inputs changed."""

    def check(**changes: Any) -> str:
        return "\n".join(ClusterPreflight().check({}, {**inputs, **changes}))

    eventually(lambda: check() == "", "the cluster is free again after another test")
    return check


def test_a_cluster_that_does_and_the_time_it_takes(lacks: Check) -> None:
    start = time.monotonic()
    assert lacks() == ""
    assert time.monotonic() - start < 5, "a preview has 10 s for everything; measured 0.2 s"


def test_one_node_short(lacks: Check) -> None:
    line = lacks(nodes=NODES + 1)
    assert f"needs {NODES + 1} nodes with 8 free amd.com/gpu, {NODES} have them: there are no others" in line


def test_gpus_that_somebody_else_uses(core: Any, namespace: str, lacks: Check) -> None:
    core.create_namespaced_pod(namespace, _pod("worker", "mi325x-0", {"amd.com/gpu": "2"}))
    core.create_namespaced_pod(namespace, _pod("reader", "mi325x-1", {"memory": "300Gi"}))
    line = eventually(lambda: text if "reader" in (text := lacks()) else "", "both pods are bound")
    assert f"{NODES - 2} have them" in line
    assert f"mi325x-0 has 6 of 8 amd.com/gpu free (used by {namespace}/worker)" in line
    assert f"mi325x-1 has 980Gi of 1280Gi memory free (used by {namespace}/reader)" in line


def test_pods_of_the_stack_itself_make_way(core: Any, namespace: str, lacks: Check) -> None:
    own = _pod("llm-worker", "mi325x-0", {"amd.com/gpu": "8"})
    own["metadata"]["labels"] = {"app.kubernetes.io/instance": "pd-test"}
    core.create_namespaced_pod(namespace, own)
    eventually(lambda: "llm-worker" in lacks(stack="another"), "the pod is bound")
    assert lacks() == ""


def test_a_cordoned_and_a_tainted_node(core: Any, lacks: Check) -> None:
    keep = core.read_node("mi325x-1").spec.to_dict()["taints"]
    try:
        core.patch_node("mi325x-0", {"spec": {"unschedulable": True}})
        core.patch_node("mi325x-1", {"spec": {"taints": [{"key": "x", "value": "y", "effect": "NoSchedule"}]}})
        line = lacks()
        assert "mi325x-0 is cordoned" in line
        assert "mi325x-1 is tainted x=y:NoSchedule" in line
    finally:
        core.patch_node("mi325x-0", {"spec": {"unschedulable": None}})
        core.patch_node("mi325x-1", {"spec": {"taints": [{"key": t["key"], "effect": t["effect"]} for t in keep]}})
    eventually(lambda: lacks() == "", "both nodes are back")


def test_what_the_nodes_do_not_offer(lacks: Check) -> None:
    assert "mi325x-0 lacks rdma/ib (and 3 more)" in lacks(rdmaResources={"rdma/ib": 1})
    assert "there is none with the labels a=b" in lacks(nodeSelector={"a": "b"})
    assert "Ray head: no CPU node has 40 cpu" in lacks(headCpu="40")


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


def test_operators_that_are_there_already(api: client.ApiClient, namespace: str, inputs: Json, lacks: Check) -> None:
    apps: Any = client.AppsV1Api(api)
    pinned = inputs["rayOperator"]["version"]
    chart = {**inputs["rayOperator"], "install": "chart"}
    assert lacks(rayOperator=chart) == ""
    apps.create_namespaced_deployment(namespace, _operator("older", "v1.4"))
    assert f"the operator is 1.4 in namespace {namespace}, this stack needs {pinned}" in lacks()
    assert f"an operator runs in namespace {namespace} already (version 1.4)" in lacks(rayOperator=chart)
    own = {**chart, "namespace": namespace}
    before = {**inputs, "rayOperator": own}
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


@pytest.fixture
def as_user(cluster: SimulatedCluster) -> Callable[..., str]:
    """The kubeconfig of a new user with these rules, for this process."""

    def make(name: str, rules: Sequence[Json], namespace: str | None) -> str:
        inside = yaml.safe_load(cluster.restricted_kubeconfig(name, rules, namespace).read_text())
        outside = yaml.safe_load(cluster.outside_kubeconfig.read_text())
        inside["clusters"][0]["cluster"] = outside["clusters"][0]["cluster"]
        return yaml.safe_dump(inside)

    return make


def test_a_user_of_one_namespace(as_user: Callable[..., str], namespace: str, lacks: Check, inputs: Json) -> None:
    every = {"apiGroups": ["", "batch", "ray.io"], "resources": ["*"], "verbs": ["*"]}
    kubeconfig = as_user(f"{namespace}-admin", [every], namespace)
    assert lacks(kubeconfig=kubeconfig) == "", "it may do everything there, and looks nowhere else"
    core, batch, ray = lacks(kubeconfig=kubeconfig, namespace="another").splitlines()
    assert "; create namespaces in the whole cluster; ask" in core
    assert "create, delete, get, list, patch, watch configmaps, persistentvolumeclaims, secrets, services and" in core
    assert "cronjobs.batch" in batch
    assert "rayservices.ray.io in namespace another; ask" in ray
    preflight, said = ClusterPreflight(), []
    preflight.check({}, {**inputs, "kubeconfig": kubeconfig})
    preflight.create(inputs, Operation(lambda text, lasting: said.append(text), threading.Event()))
    assert any("may not list nodes and pods of the whole cluster" in line for line in said)


def test_a_user_who_may_only_look(as_user: Callable[..., str], namespace: str, lacks: Check) -> None:
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    lines = lacks(kubeconfig=as_user(f"{namespace}-viewer", rules, None)).splitlines()
    assert len(lines) == 3, "one for each API group"
    assert f"create, delete, patch rayservices.ray.io in namespace {namespace}" in "\n".join(lines)
    assert "create pods/exec" in "\n".join(lines)
    assert "get pods/log" not in "\n".join(lines)


def test_a_token_that_is_not_accepted(cluster: SimulatedCluster, lacks: Check) -> None:
    document = yaml.safe_load(cluster.outside_kubeconfig.read_text())
    document["users"][0]["user"] = {"token": "expired"}
    line = lacks(kubeconfig=yaml.safe_dump(document))
    assert "refused the credentials of" in line
    assert "\n" not in line


def test_nodes_on_their_way_are_waited_for(api: client.ApiClient, inputs: Json, lacks: Check) -> None:
    coming = {**inputs, "wait": True, "nodes": 1, "nodeSelector": {POOL: "coming"}}
    assert ClusterPreflight().check({}, coming) == []
    said: list[str] = []

    def say(text: str, lasting: bool) -> None:
        if not said:
            add_nodes(api, [gpu_node("coming-0", pool="coming")], ready_within_s=0)
        said.append(text)

    try:
        ClusterPreflight().create(coming, Operation(say, threading.Event()))
        assert said[0].startswith(f"nodes: there is none with the labels {POOL}=coming")
        late = {**coming, "timeoutSeconds": 0, "nodes": 2, "headCpu": "40"}
        with pytest.raises(ResourceError, match=r"not ready after 0 s:\n(.*\n)*Ray head: "):
            ClusterPreflight().update("id", coming, late, Operation(say, threading.Event()))
    finally:
        remove_nodes(api, "coming")


def test_a_preview_of_the_whole_program(shell: ClusterShell) -> None:
    write_stack(shell, "short", topology="4p1d")
    start = time.monotonic()
    preview = shell.run("pulumi preview")
    assert_one_clear_line(preview, "nodes: needs 5 nodes with 8 free amd.com/gpu", "4 have them")
    assert time.monotonic() - start < 30, "measured on a busy machine; 10 s are the aim on an idle one"


_PROGRAM = """
from pathlib import Path
import pulumi
from infra.cluster.access import KubernetesAccess
from infra.cluster_preflight import ClusterPreflight
from infra.kept_objects import KeptObjects
from infra.settings import read_settings
from serving.stack import Stack

stack = read_settings()
assert isinstance(stack, Stack)
access = KubernetesAccess(pulumi.Output.secret(Path("{kubeconfig}").read_text()))
ClusterPreflight("preflight", stack, "content", "default", access)
KeptObjects("kept", stack, "content", "default", access)
"""


def test_the_content_of_a_kubeconfig_stays_secret(shell: ClusterShell) -> None:
    token = yaml.safe_load(shell.cluster.kubeconfig.read_text())["users"][0]["user"]["token"]
    write_stack(shell, "content", topology="1p1d")
    (shell.checkout / "infra" / "__main__.py").write_text(_PROGRAM.format(kubeconfig=shell.cluster.kubeconfig))
    for command in ("up --yes", "refresh --yes", "preview --diff", "stack export"):
        answer = shell.run(f"pulumi {command}")
        assert answer.ok, answer.text
        for clear in (token, "current-context"):
            assert clear not in answer.text, command
    backend = Path(shell.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    for file in (file for file in backend.rglob("*") if file.is_file()):
        assert token.encode() not in file.read_bytes(), file
    destroy = shell.run("pulumi destroy --yes")
    assert destroy.ok, destroy.text
    assert "kubectl delete namespace" not in destroy.text  # `default` was there before the stack


def _pod(name: str, node: str, requests: dict[str, str]) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "c", "image": "registry.example/c:1", "resources": {"limits": requests, "requests": requests}}
            ],
        },
    }


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
