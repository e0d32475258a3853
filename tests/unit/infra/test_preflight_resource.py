"""The resource around the checks: when it looks, when it waits, what it asks of Pulumi."""

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from registrations import registered, stack

from infra.cluster.access import KubernetesAccess
from infra.cluster_preflight import ClusterPreflight as Registered
from infra.provider import cluster_preflight
from infra.provider.cluster_preflight import ClusterPreflight
from infra.provider.kubernetes_api import Unavailable
from infra.provider.preflight.facts import Facts
from infra.provider.resource import Interrupted, Operation, ResourceError
from serving.versions import versions

Json = dict[str, Any]
BARE = Facts("me", {"major": "1", "minor": "34"})  # a cluster in which nothing may be looked at
TOO_OLD = Facts("me", {"major": "1", "minor": "20"})


def inputs(**settings: Any) -> Json:
    """The inputs that the program registers for a stack, as the provider gets them."""
    access = KubernetesAccess("/kubeconfig", waits=settings.pop("waits", False))
    seen = registered(lambda opts: [Registered("preflight", stack(**settings), "pd-test", "pd-space", access, opts)])
    return seen[0].inputs


@pytest.fixture
def chart() -> Json:
    """Inputs of a stack that installs KubeRay itself, on nodes that are there."""
    return inputs()


@pytest.fixture
def nodes_come(chart: Json) -> Json:
    """The same for nodes that the same update makes."""
    return {**chart, "wait": True}


class Cluster:
    """Answers one look after another: facts, or an error to raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: Facts | ResourceError) -> None:
        self.looks = list(looks)
        self.own_operators: list[str] = []
        self.versions = 0
        cluster = self

        class Api:
            def __init__(self, kubeconfig: str, context: str) -> None:
                assert kubeconfig == "/kubeconfig"

            def get(self, path: str) -> Json:
                assert path == "/version"
                cluster.versions += 1
                if isinstance(cluster.looks[0], ResourceError):
                    raise cluster.looks[0]
                return {}

        monkeypatch.setattr(cluster_preflight, "KubernetesApi", Api)
        monkeypatch.setattr(cluster_preflight, "gather", self.gather)
        monkeypatch.setattr(cluster_preflight, "_POLL_SECONDS", 0.01)

    def gather(self, api: object, inputs: Json, own_operator: str) -> Facts:
        self.own_operators.append(own_operator)
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, ResourceError):
            raise look
        return look


def operation() -> tuple[Operation, list[str]]:
    said: list[str] = []
    return Operation(lambda text, lasting: said.append(text), Event()), said


def test_a_preview_says_what_is_lacking(monkeypatch: pytest.MonkeyPatch, chart: Json) -> None:
    Cluster(monkeypatch, TOO_OLD)
    assert [line.partition(":")[0] for line in ClusterPreflight().check({}, chart)] == ["version"]
    Cluster(monkeypatch, BARE)
    assert ClusterPreflight().check({}, chart) == []


def test_another_current_context_moves_nothing(monkeypatch: pytest.MonkeyPatch, chart: Json) -> None:
    Cluster(monkeypatch, BARE)
    before = {**chart, "context": "mine", "contextChosen": False}
    preflight = ClusterPreflight()
    assert preflight.check({}, before) == []
    assert preflight.check(before, before) == []
    [line] = preflight.check(before, {**before, "context": "other"})
    assert "deployed through context 'mine', and the current one of /kubeconfig is 'other'" in line
    assert "set cluster.context to 'mine', or to another one to move" in line
    assert preflight.check(before, {**before, "context": "other", "contextChosen": True}) == []
    unnamed = {**before, "context": ""}  # by an earlier release of this program
    assert preflight.check(unnamed, before) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist; set cluster.kubeconfig"),
        (b"", "is not a YAML document"),
        (b"a: [", "is not a YAML document"),
        (b"\xff\xfe\x00", "cannot be read: not a text file"),
        (b"clusters: 5", "is malformed: `clusters`"),
        (b"{}", "deployed through context 'mine', and the current one of"),  # a file that has none
    ],
)
def test_a_file_that_is_gone_says_so_on_a_deployed_stack(
    tmp_path: Path, chart: Json, content: bytes | None, words: str
) -> None:
    """And not that its current context is another one."""
    file = tmp_path / "config"
    if content is not None:
        file.write_bytes(content)
    before = {**chart, "context": "mine", "contextChosen": False}
    [line] = ClusterPreflight().check(before, {**before, "kubeconfig": str(file), "context": ""})
    assert words in line
    assert str(file) in line


def test_a_cluster_that_cannot_be_looked_at_is_one_line(
    monkeypatch: pytest.MonkeyPatch, chart: Json, nodes_come: Json
) -> None:
    Cluster(monkeypatch, ResourceError("refused the credentials"))
    assert ClusterPreflight().check({}, chart) == ["refused the credentials"]
    assert ClusterPreflight().check({}, nodes_come) == ["refused the credentials"]


def test_nodes_on_their_way_are_not_looked_for_in_a_preview(monkeypatch: pytest.MonkeyPatch, nodes_come: Json) -> None:
    cluster = Cluster(monkeypatch, TOO_OLD)
    assert ClusterPreflight().check({}, nodes_come) == []
    assert cluster.versions == 1
    assert cluster.own_operators == []


def test_nodes_on_their_way_are_waited_for(monkeypatch: pytest.MonkeyPatch, nodes_come: Json) -> None:
    cluster = Cluster(monkeypatch, Unavailable("no address yet"), TOO_OLD, BARE)
    running, said = operation()
    resource_id, outputs = ClusterPreflight().create(nodes_come, running)
    assert (resource_id, outputs) == ("pd-test-preflight", {})
    assert len(cluster.own_operators) == 3
    assert said[0].startswith("no address yet")


def test_what_there_is_is_not_looked_at_twice(monkeypatch: pytest.MonkeyPatch, chart: Json) -> None:
    cluster = Cluster(monkeypatch, BARE)
    preflight = ClusterPreflight()
    preflight.check({}, chart)
    running, said = operation()
    preflight.create(chart, running)
    assert len(cluster.own_operators) == 1
    assert any("may not list nodes and pods" in line for line in said), "notes are said where they can be"


def test_a_wait_ends_with_all_that_is_lacking(monkeypatch: pytest.MonkeyPatch, nodes_come: Json) -> None:
    Cluster(monkeypatch, Facts("me", {}, storage_classes=[]))
    running, _ = operation()
    with pytest.raises(ResourceError) as caught:
        ClusterPreflight().create({**nodes_come, "timeoutSeconds": 0}, running)
    first, *lines = str(caught.value).splitlines()
    assert first == "the cluster is not ready after 0 s:"
    assert [line.partition(":")[0] for line in lines] == ["version", "storage"]


def test_what_waiting_cannot_mend_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, nodes_come: Json) -> None:
    Cluster(monkeypatch, ResourceError("refused the credentials"))
    with pytest.raises(ResourceError, match="refused the credentials"):
        ClusterPreflight().create(nodes_come, operation()[0])


def test_ctrl_c_ends_a_wait(monkeypatch: pytest.MonkeyPatch, nodes_come: Json) -> None:
    Cluster(monkeypatch, TOO_OLD)
    running, _ = operation()
    running.cancelled.set()
    with pytest.raises(Interrupted):
        ClusterPreflight().create(nodes_come, running)


@pytest.mark.parametrize(
    ("before", "own"),
    [(None, ""), ({}, "pd-space"), ({"rayOperator": {"install": "preinstalled"}}, "")],
)
def test_the_operator_of_the_last_update_is_this_stacks_own(
    monkeypatch: pytest.MonkeyPatch, before: Json | None, own: str, chart: Json, nodes_come: Json
) -> None:
    cluster = Cluster(monkeypatch, BARE)
    olds = {} if before is None else inputs(**before)
    ClusterPreflight().check(olds, chart)
    ClusterPreflight().update("id", olds, nodes_come, operation()[0])
    assert cluster.own_operators == [own, own]


def test_any_other_input_is_a_change(chart: Json) -> None:
    preflight = ClusterPreflight()
    assert preflight.changed(chart, chart) is False
    assert preflight.changed(chart, {**chart, "nodes": 9}) is True
    assert preflight.read("id", chart) == (chart, {})


def test_what_the_program_registers(chart: Json) -> None:
    assert chart["nodes"] == 2
    assert chart["wait"] is False
    assert chart["rayOperator"] == {
        "install": "chart",
        "version": versions()["kuberay"]["version"],
        "namespace": "pd-space",
        "stack": "",
    }
    assert chart["rdmaResources"]["rdma/fabric7"] == 1
    assert chart["tolerations"] == [{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    shared = inputs(cluster={"provider": "stack", "stack": "mi325x-4node"})
    assert shared["rayOperator"]["install"] == "preinstalled", "the stack that owns the nodes has one for all"
    assert shared["rayOperator"]["stack"] == "mi325x-4node"
    policy = inputs(cluster={"provider": "existing", "nicClusterPolicy": {"fabric0": ["eth1"]}})
    assert (policy["nicClusterPolicy"], chart["nicClusterPolicy"]) == (True, False)
    # What the policy itself makes is not on the nodes yet.
    assert set(chart["rdmaResources"]) - set(policy["rdmaResources"]) == {"rdma/fabric0"}
    oke = inputs(cluster={"provider": "existing", "profile": "oke-mi300x"}, fabric={"gate": "off"})
    assert oke["attachments"] == ["rdma-vf"] * 8
    assert (chart["inspectsFabric"], oke["inspectsFabric"]) == (True, False)
