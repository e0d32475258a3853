"""Room for engine pods and for the head: which nodes count, and what is said about the others."""

from typing import Any

import pytest

from infra.provider.preflight.facts import Facts
from infra.provider.preflight.nodes import lacks, notes

Node = dict[str, Any]
FABRIC = {f"rdma/fabric{nic}": "63" for nic in range(8)}
GPU_TAINT = {"key": "amd.com/gpu", "effect": "NoSchedule"}
INPUTS: dict[str, Any] = {
    "stack": "pd-2p1d",
    "namespace": "pd-2p1d",
    "nodes": 3,
    "gpuResource": "amd.com/gpu",
    "gpusPerNode": 8,
    "engineCpu": "132",
    "engineMemory": "1062Gi",
    "rdmaResources": dict.fromkeys(FABRIC, 1),
    "tolerations": [{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "nodeSelector": {"gpu-brand": "amd"},
    "systemNodeSelector": {"pool": "system"},
    "headCpu": "4",
    "headMemory": "12Gi",
}


def gpu_node(number: int, *, ready: str = "True", **changes: Any) -> Node:
    size = {"cpu": "160", "memory": "1280Gi", "amd.com/gpu": "8", **FABRIC, **changes.pop("size", {})}
    return {
        "metadata": {"name": f"mi325x-{number}", "labels": {"gpu-brand": "amd", **changes.pop("labels", {})}},
        "spec": {"taints": [GPU_TAINT], **changes},
        "status": {
            "allocatable": {name: text for name, text in size.items() if text},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def system_node(cpu: str = "8", memory: str = "16Gi", **changes: Any) -> Node:
    return {
        "metadata": {"name": "system-0", "labels": {"pool": "system"}},
        "spec": changes,
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(node: str, name: str = "team-a/llm-worker-1", phase: str = "Running", stack: str = "", **requests: str) -> Node:
    namespace, _, name = name.partition("/")
    labels = {"app.kubernetes.io/instance": stack} if stack else None
    requests = {key.replace("gpus", "amd.com/gpu"): text for key, text in requests.items()}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]},
        "status": {"phase": phase},
    }


def told(nodes: list[Node], pods: list[Node] | None = None, /, **inputs: Any) -> str:
    """All lines about these nodes and pods."""
    return "\n".join(lacks({**INPUTS, **inputs}, Facts("me", {}, nodes=nodes, pods=pods or [])))


def three() -> list[Node]:
    return [system_node(), *(gpu_node(number) for number in range(3))]


def test_enough_nodes_lack_nothing() -> None:
    assert told(three()) == ""


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ready": "False"}, "mi325x-3 is not Ready"),
        ({"ready": "Unknown"}, "mi325x-3 is not Ready"),
        ({"unschedulable": True}, "mi325x-3 is cordoned"),
        ({"taints": [{"key": "x", "value": "y", "effect": "NoExecute"}]}, "mi325x-3 is tainted x=y:NoExecute"),
        ({"taints": [GPU_TAINT, {"key": "x", "effect": "NoSchedule"}]}, "mi325x-3 is tainted x:NoSchedule"),
        ({"size": {"rdma/fabric5": ""}}, "mi325x-3 lacks rdma/fabric5"),
        ({"size": dict.fromkeys(FABRIC, "")}, "mi325x-3 lacks rdma/fabric0, rdma/fabric1, "),
        ({"size": dict.fromkeys(FABRIC, "")}, "rdma/fabric4 and 3 more"),
        ({"size": {"amd.com/gpu": "4"}}, "mi325x-3 has only 4 of the 8 amd.com/gpu asked for"),
        ({"size": {"memory": "768Gi"}}, "mi325x-3 has only 768Gi of the 1062Gi memory asked for"),
        ({"labels": {"gpu-brand": "other"}}, "2 have them: there are no others"),
    ],
)
def test_a_third_node_that_does_not_do(changed: dict[str, Any], words: str) -> None:
    nodes = [*three()[:3], gpu_node(3, **changed)]
    line = told(nodes)
    assert line.startswith("nodes: needs 3 nodes with 8 free amd.com/gpu, 2 have them: ")
    assert words in line
    assert told([*nodes, gpu_node(4)]) == "", "another one that does"


@pytest.mark.parametrize(
    "taint", [{"key": "x", "effect": "PreferNoSchedule"}, {"key": "amd.com/gpu", "value": "present", **GPU_TAINT}]
)
def test_a_taint_that_does_not_keep_the_engine_away(taint: Node) -> None:
    assert told([*three()[:3], gpu_node(3, taints=[taint])]) == ""


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k"}, False),
        ({"key": "l", "operator": "Exists"}, False),
    ],
)
def test_tolerations_mean_what_the_scheduler_takes_them_for(toleration: dict[str, str], tolerated: bool) -> None:
    nodes = [system_node(), gpu_node(0, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])]
    assert (told(nodes, nodes=1, tolerations=[toleration]) == "") is tolerated


def test_what_somebody_else_holds_is_not_free() -> None:
    line = told(three(), [pod("mi325x-1", gpus="8"), pod("mi325x-1", "team-a/monitor", cpu="1")])
    assert "2 have them: mi325x-1 has 0 of 8 amd.com/gpu free (used by team-a/llm-worker-1); " in line


def test_many_holders_are_counted() -> None:
    line = told(three(), [pod("mi325x-1", f"team-b/job-{number}", cpu="10") for number in range(5)])
    assert "mi325x-1 has 110 of 160 cpu free (used by team-b/job-4, team-b/job-3, team-b/job-2 and 2 more)" in line


@pytest.mark.parametrize(
    ("holder", "counts"),
    [
        (pod("mi325x-1", "pd-2p1d/llm-worker", stack="pd-2p1d", gpus="8"), False),
        (pod("mi325x-1", "elsewhere/llm-worker", stack="pd-2p1d", gpus="8"), True),
        (pod("mi325x-1", "pd-2p1d/llm-worker", stack="another", gpus="8"), True),
        (pod("mi325x-1", phase="Succeeded", gpus="8"), False),
        (pod("mi325x-1", phase="Failed", gpus="8"), False),
        (pod("mi325x-1", phase="Pending", gpus="8"), True),
        (pod("", gpus="8"), False),
        (pod("mi325x-1", cpu="28"), False),
        (pod("mi325x-1", cpu="28001m"), True),
        (pod("mi325x-1", gpus="0"), False),
    ],
)
def test_whose_pods_count(holder: Node, counts: bool) -> None:
    assert ("2 have them" in told(three(), [holder])) is counts


def test_nodes_with_the_same_reason_are_one_reason() -> None:
    assert "0 have them: mi325x-0 lacks rdma/ib (and 2 more); " in told(three(), rdmaResources={"rdma/ib": 1})


def test_the_nearest_nodes_come_first_and_the_rest_is_counted() -> None:
    others = [gpu_node(number, size={"cpu": str(number)}) for number in range(10, 19)]
    line = told([system_node(), gpu_node(1, unschedulable=True), *others], nodeSelector={})
    assert line.index("mi325x-10") < line.index("mi325x-14")
    assert "and 6 more" in line
    assert "system-0" not in line
    assert "is cordoned" not in line


def test_a_node_takes_one_engine_even_if_it_has_gpus_for_two() -> None:
    half = {"gpusPerNode": 4, "engineCpu": "60", "engineMemory": "500Gi"}
    assert told([system_node(), gpu_node(0)], nodes=1, **half) == ""
    assert "needs 2 nodes with 4 free amd.com/gpu, 1 have them" in told([system_node(), gpu_node(0)], nodes=2, **half)


def test_no_device_plugin_at_all() -> None:
    assert "no node has amd.com/gpu (is its device plugin running?)" in told(
        [system_node(), gpu_node(0, size={"amd.com/gpu": ""})], nodes=1
    )


def test_no_node_with_the_labels() -> None:
    assert "nodes: there is none with the labels gpu-brand=nobody; " in told(
        three(), nodeSelector={"gpu-brand": "nobody"}
    )


CPU_ONLY = {
    "gpuResource": "",
    "gpusPerNode": 0,
    "rdmaResources": {},
    "engineCpu": "2",
    "engineMemory": "4Gi",
    "nodeSelector": {},
    "tolerations": [],
}


@pytest.mark.parametrize(("cpu", "words"), [("10", ""), ("9", "Ray head: "), ("5", "room for 3 engine pods")])
def test_cpu_replicas_share_a_node_with_each_other_and_the_head(cpu: str, words: str) -> None:
    lines = told([system_node(cpu, memory="64Gi")], **CPU_ONLY)
    assert (words in lines) if words else lines == ""


def test_what_is_left_of_a_node_for_cpu_replicas() -> None:
    line = told([system_node("5", memory="64Gi")], **CPU_ONLY)
    assert "nodes: needs room for 3 engine pods, there is room for 2: system-0 has room for 2; " in line
    assert (
        "Ray head: no CPU node has 4 cpu and 12Gi memory free: system-0 has 1 of 5 cpu free (used by this stack's"
        in line
    )


@pytest.mark.parametrize(
    ("system", "words"),
    [
        (system_node(cpu="2"), "system-0 has only 2 of the 4 cpu asked for"),
        (system_node(memory="11Gi"), "system-0 has only 11Gi of the 12Gi memory asked for"),
        (system_node(unschedulable=True), "system-0 is cordoned"),
        (system_node(taints=[GPU_TAINT]), "system-0 is tainted amd.com/gpu:NoSchedule"),
    ],
)
def test_the_head_needs_a_node_of_its_own(system: Node, words: str) -> None:
    line = told([system, *three()[1:]])
    assert line.startswith("Ray head: no CPU node has 4 cpu and 12Gi memory free: ")
    assert words in line


def test_pods_take_from_the_heads_node_as_well() -> None:
    assert "system-0 has 3 of 8 cpu free (used by kube-system/dns)" in told(
        three(), [pod("system-0", "kube-system/dns", cpu="5")]
    )


def test_no_node_for_the_head() -> None:
    assert "Ray head: there is no node with the labels pool=none; " in told(
        three(), systemNodeSelector={"pool": "none"}
    )


def test_engines_leave_the_head_its_node_where_they_can() -> None:
    large = {"cpu": "140", "memory": "1100Gi", "amd.com/gpu": "8", **FABRIC}
    shared = gpu_node(0, size=large, labels={"pool": "system"})
    shared["spec"] = {}
    assert told([shared, gpu_node(1), gpu_node(2)], nodes=2, headCpu="10") == ""
    assert "Ray head: no CPU node" in told([shared, gpu_node(1)], nodes=2, headCpu="10")


def test_one_node_is_not_called_nodes() -> None:
    assert "needs 1 node with 8 free amd.com/gpu, 0 have" in told([system_node(), gpu_node(0, ready="False")], nodes=1)


@pytest.mark.parametrize(
    ("facts", "hidden"),
    [
        (Facts("me", {}, nodes=None, pods=[]), "nodes"),
        (Facts("me", {}, nodes=[], pods=None), "pods"),
        (Facts("me", {}, nodes=None, pods=None), "nodes and pods"),
    ],
)
def test_what_cannot_be_listed_is_said_and_not_judged(facts: Facts, hidden: str) -> None:
    assert lacks(INPUTS, facts) == []
    [note] = notes(INPUTS, facts)
    assert f"me may not list {hidden} of the whole cluster" in note
    assert notes(INPUTS, Facts("me", {}, nodes=[], pods=[])) == []
