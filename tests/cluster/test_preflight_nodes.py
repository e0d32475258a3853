"""The checks of nodes against a real API server: what pods leave free, real taints, nodes that are on their way."""

import threading
import time
from typing import Any

import pytest
from kubernetes import client

from infra.provider.cluster_preflight import ClusterPreflight
from infra.provider.resource import Operation, ResourceError
from tests.cluster.conftest import NODES, POOL, Check, Json
from tests.cluster.waiting import eventually
from tools.rehearsal.nodes import add_nodes, gpu_node, remove_nodes


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


def test_nodes_on_their_way_are_waited_for(api: client.ApiClient, preflight_inputs: Json, lacks: Check) -> None:
    coming = {**preflight_inputs, "wait": True, "nodes": 1, "nodeSelector": {POOL: "coming"}}
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
