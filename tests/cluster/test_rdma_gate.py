"""RDMA is proven before anything serves: the fabric inspector and the gate, on nodes and with logs that are stand-ins.

One stack goes through all of it, in this order: each update repairs or changes what the one before left.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from serving.fabric.combine import combine
from serving.fabric.node import NodeFabric
from tests.cluster.conftest import NODES, ClusterShell, cluster_shell
from tests.cluster.deployment import IMAGES, api_of, everything, pods, ray_service, uids, write_stack
from tests.cluster.waiting import eventually
from tests.shell import Answer, assert_one_clear_line
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.fabric_stand_in import gate_log, inspector_log, stand_in_node
from tools.rehearsal.pods import Play

NAME = "gated"
UP = "pulumi up --yes --skip-preview"
NICS = combine({"node": stand_in_node()}, {}).devices
RUNS = NODES * (len(NICS) + 1)  # each node reads over each NIC, and over all
LABEL = "pd-mi325x/fabric"

# As if the engines' variables allowed it, which a guard would not let pass.
OVER_TCP = {
    "lane": "tcp/eth0",
    "description": "software emulation",
    "environment": "UCX_TLS=rc,tcp,sm,self,rocm_copy UCX_ROCM_COPY_DMABUF=y",
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, cluster: SimulatedCluster) -> Iterator[ClusterShell]:
    shell = cluster_shell(tmp_path_factory.mktemp("gate"), cluster)
    write_stack(shell, NAME, shipped="pd-2p1d", fabric={"gate": "required"})
    yield shell
    cluster.pods.play(Play("*", NAME, log=""))
    if api_of(shell).list(f"/apis/apps/v1/namespaces/{NAME}/daemonsets"):  # a test has failed on the way
        shell.run("pulumi cancel --yes")
        shell.run("pulumi destroy --yes --skip-preview", 300)
    shell.run(f"kubectl delete namespace {NAME} --timeout=120s")


@pytest.fixture(scope="module")
def before(shell: ClusterShell) -> set[tuple[str, str, str]]:
    return everything(api_of(shell))


def gate_says(shell: ClusterShell, side: str, log: str, outcome: Any = "succeeded") -> None:
    shell.cluster.pods.play(Play(f"rdma-gate-*-{side}-*", NAME, log=log, outcome=outcome, after_s=0.1))


def jobs(shell: ClusterShell) -> list[str]:
    return [it["metadata"]["name"] for it in api_of(shell).list(f"/apis/batch/v1/namespaces/{NAME}/jobs")]


def service_there(shell: ClusterShell) -> bool:
    return bool(api_of(shell).list(f"/apis/ray.io/v1/namespaces/{NAME}/rayservices"))


def target(shell: ClusterShell) -> dict[str, Any]:
    found = api_of(shell).get(f"/api/v1/namespaces/{NAME}/configmaps/benchmark-target")
    assert found
    return json.loads(found["data"]["target.json"])


def node_labels(shell: ClusterShell) -> list[str | None]:
    return [node["metadata"]["labels"].get(LABEL) for node in api_of(shell).list("/api/v1/nodes")]


def failed(answer: Answer) -> None:
    assert not answer.ok, answer.text
    assert "Traceback" not in answer.text, answer.text


def test_nodes_that_differ_are_named(shell: ClusterShell, before: set[tuple[str, str, str]]) -> None:
    other = NodeFabric.model_validate_json(stand_in_node().model_dump_json().replace('"index":3', '"index":5'))
    shell.cluster.pods.play(Play("fabric-inspector-*", NAME, node="mi325x-1", log=inspector_log(other)))
    up = shell.run(UP, 300)
    assert_one_clear_line(up, "UCX_IB_GID_INDEX differs between nodes", "3 on mi325x-0", "5 on mi325x-1")
    assert not service_there(shell)
    assert jobs(shell) == []
    shell.cluster.pods.play(Play("fabric-inspector-*", NAME, log=inspector_log(stand_in_node())))
    gone = shell.run(f"kubectl -n {NAME} delete pods -l app.kubernetes.io/component=fabric-inspector")
    assert gone.ok, gone.text


def test_ctrl_c_leaves_no_job(shell: ClusterShell) -> None:
    gate_says(shell, "client", "", outcome=None)
    answer = shell.interrupt(UP, "RDMA gate, round 1 of 2")
    failed(answer)
    assert jobs(shell) == []


def test_a_gate_that_fails_keeps_everything_from_serving(shell: ClusterShell) -> None:
    for side in ("client", "server"):
        gate_says(shell, side, gate_log(side, NICS, **OVER_TCP))
    up = shell.run(UP, 300)
    failed(up)
    assert f"{RUNS} of {RUNS} runs failed between {NODES} nodes; nothing serves (fabric.gate: required)" in up.text
    assert_one_clear_line(up, "reads from", "over mlx5_2:1", "lane tcp/eth0", "staged")
    assert_one_clear_line(up, "probable cause: UCX_TLS=rc,tcp", "lets UCX fall back to tcp", "name RDMA")
    assert not service_there(shell)
    # For whoever wants to know more.
    assert len(jobs(shell)) == 2 * NODES
    assert f"kubectl --namespace {NAME} logs job/rdma-gate-0-client" in up.text
    assert "software emulation" in shell.run(f"kubectl --namespace {NAME} logs job/rdma-gate-0-client").text


def test_warn_says_the_same_and_goes_on(shell: ClusterShell) -> None:
    shell.write_stack(NAME, fabric={"gate": "warn"})
    up = shell.run(UP, 300)
    assert up.ok, up.text
    assert "lane tcp/eth0" in up.text
    assert "warning: " in up.text
    assert service_there(shell)
    assert target(shell)["fabric"]["gate"] == "warned"
    assert f"{RUNS} of {RUNS} runs failed" in target(shell)["fabric"]["reason"]


def test_another_image_passes_the_gate_again_on_gpus_that_engines_held(shell: ClusterShell) -> None:
    """Its pods need the GPUs: the RayService goes first, and nobody waits for the other."""
    engines = uids(pods(api_of(shell), NAME, "engine"))
    assert len(engines) == 3
    for side in ("client", "server"):
        gate_says(shell, side, gate_log(side, NICS))
    images = {**IMAGES, "engine": IMAGES["engine"][:-4] + "beef"}
    shell.write_stack(NAME, fabric={"gate": "required"}, images=images)
    preview = shell.run("pulumi preview")
    assert preview.ok, preview.text
    assert "RayService ray-service replace" in preview.text, preview.text
    up = shell.run(UP, 300)
    assert up.ok, up.text
    assert f"{RUNS} runs passed between {NODES} nodes" in up.text
    gone, again = "RayService ray-service deleted original", "RdmaGate rdma-gate creating replacement"
    assert up.text.index(gone) < up.text.index(again), up.text
    assert jobs(shell) == []
    assert not uids(pods(api_of(shell), NAME, "engine")) & engines
    assert target(shell)["fabric"]["gate"] == "passed"
    assert shell.run("pulumi preview --expect-no-changes").ok


def test_engines_get_what_the_nodes_told(shell: ClusterShell) -> None:
    engine = pods(api_of(shell), NAME, "engine")[0]["spec"]
    assert engine["securityContext"]["supplementalGroups"] == [991]
    told = {"UCX_NET_DEVICES": ",".join(NICS), "UCX_IB_GID_INDEX": "3", "UCX_ROCM_COPY_DMABUF": "y"}
    given = {it["name"]: it.get("value") for it in engine["containers"][0]["env"]}
    assert told.items() <= given.items()
    config = yaml.safe_load(ray_service(api_of(shell), NAME)["spec"]["serveConfigV2"])
    arguments = config["applications"][0]["args"]
    for role in ("prefill_config", "decode_config"):
        assert told.items() <= arguments[role]["runtime_env"]["env_vars"].items()
    assert node_labels(shell).count("usable") == NODES


def test_off_is_said_to_every_later_benchmark(shell: ClusterShell) -> None:
    engines = uids(pods(api_of(shell), NAME, "engine"))
    shell.write_stack(NAME, fabric={"gate": "off"})
    up = shell.run(UP, 300)
    assert up.ok, up.text
    assert target(shell)["fabric"] == {"gate": "off", "reason": "fabric.gate is off"}
    assert uids(pods(api_of(shell), NAME, "engine")) == engines


def test_nothing_of_it_is_left(shell: ClusterShell, before: set[tuple[str, str, str]]) -> None:
    destroy = shell.run("pulumi destroy --yes --skip-preview", 300)
    assert destroy.ok, destroy.text
    kept = {("namespaces", NAME), ("persistentvolumeclaims", "results")}

    def left() -> set[tuple[str, str]]:
        """Pulumi does not wait until the garbage collector has let go of the last object with pods."""
        found = everything(api_of(shell)) - before
        return {(kind, name) for kind, _, name in found if kind != "persistentvolumes"}

    eventually(lambda: left() <= kept, "nothing else is left")
    assert left() == kept
    assert node_labels(shell).count(None) == len(node_labels(shell))
