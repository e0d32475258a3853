"""What the provider makes of the inspector's pods. The API is played by a dictionary."""

from threading import Event
from typing import Any

import pytest

from infra.provider import fabric_facts
from infra.provider.fabric_facts import FabricFacts
from infra.provider.kubernetes_api import Forbidden, KubernetesApi, Unavailable
from infra.provider.resource import Operation, PartlyMade, ResourceError
from serving.fabric.node import NodeFabric
from tools.rehearsal.fabric_stand_in import inspector_log, stand_in_node

Json = dict[str, Any]
INPUTS: Json = {
    "kubeconfig": "file",
    "context": "",
    "namespace": "space",
    "stack": "pd-test",
    "daemonSet": "fabric-inspector",
    "uid": "ds",
    "generation": 1,
    "given": {},
    "ucx": "",
    "gate": "required",
    "timeoutSeconds": 5,
}
SET = "/apis/apps/v1/namespaces/space/daemonsets/fabric-inspector"


def without_dmabuf() -> NodeFabric:
    fabric = stand_in_node()
    return fabric.model_copy(
        update={"kernel": fabric.kernel.model_copy(update={"options": dict.fromkeys(fabric.kernel.options, False)})}
    )


class Api(KubernetesApi):
    """A DaemonSet with a pod on each node; `logs`: node -> its pod's log, or what asking for it raises."""

    user = "me"

    def __init__(self, logs: dict[str, Any], ready: tuple[str, ...] | None = None, may_patch: bool = True) -> None:
        self.logs, self.may_patch = logs, may_patch
        self.ready = ready if ready is not None else tuple(logs)
        self.patched: dict[str, Json] = {}
        self.asked, self.generation = 0, 1

    def get(self, path: str, **query: Any) -> Any:
        if path == SET:
            count = len(self.logs)
            status = {"desiredNumberScheduled": count, "updatedNumberScheduled": count}
            status["observedGeneration"] = self.generation
            return {"metadata": {"uid": "ds", "generation": self.generation}, "status": status}
        return {"metadata": self.patched[path.rpartition("/")[2]]}

    def list(self, path: str, **query: Any) -> list[Json]:
        if path == "/api/v1/nodes":
            return [self._node(name) for name in self.logs]
        return [self._pod(name) for name in self.logs]

    def _node(self, name: str) -> Json:
        status = "True" if name in self.ready else "False"
        return {
            "metadata": {"name": name},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        }

    def _pod(self, node: str) -> Json:
        owner = {"uid": "ds"}
        metadata = {"name": f"pod-{node}", "uid": f"pod-{node}", "ownerReferences": [owner]}
        return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": "Pending"}}

    def text(self, path: str, **query: Any) -> str | None:
        self.asked += 1
        log = self.logs[path.split("/")[-2].removeprefix("pod-")]
        if isinstance(log, Exception):
            raise log
        return log

    def allowed(self, group: str, resource: str, verb: str, namespace: str = "") -> bool:
        return self.may_patch

    def patch(self, path: str, body: Json) -> bool:
        name = path.rpartition("/")[2]
        there = self.patched.setdefault(name, {"labels": {}, "annotations": {}})
        for kind, values in body["metadata"].items():
            there[kind] = {k: v for k, v in {**there[kind], **values}.items() if v is not None}
        return True


class Said:
    """An operation, and what it has said."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.operation = Operation(
            lambda message, lasting: self.lines.append(message), Event(), warning=self.warnings.append
        )


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Create the resource over an API. Returns (outputs, what was said)."""

    def make(api: Api, **inputs: Any) -> tuple[Json, Said]:
        monkeypatch.setattr(fabric_facts, "_api", lambda properties: api)
        said = Said()
        return FabricFacts(poll_seconds=0.01).create({**INPUTS, **inputs}, said.operation)[1], said

    return make


LOG = inspector_log(stand_in_node())


def test_outputs_are_what_engines_and_the_gate_need(facts: Any) -> None:
    outputs, said = facts(Api({"b": LOG, "a": f"a warning\n{LOG}"}))
    assert outputs["environment"]["UCX_IB_GID_INDEX"] == "3"
    assert outputs["supplementalGroups"] == [991]
    assert outputs["devices"][0] == "mlx5_2:1"
    assert outputs["hardware"] == outputs["devices"]
    assert (outputs["linkGbps"], outputs["nodes"]) == (400, ["a", "b"])
    assert any(line.startswith("a, b: note: NICs are in VRFs") for line in outputs["findings"])
    assert said.warnings == []
    assert len(str(outputs)) < 3000


def test_nodes_that_differ_end_the_update(facts: Any) -> None:
    other = NodeFabric.model_validate_json(stand_in_node().model_dump_json().replace('"index":3', '"index":5'))
    with pytest.raises(ResourceError, match=r"UCX_IB_GID_INDEX differs between nodes.*3 on a; 5 on b"):
        facts(Api({"a": LOG, "b": inspector_log(other)}))
    outputs, _ = facts(Api({"a": LOG, "b": inspector_log(other)}), given={"UCX_IB_GID_INDEX": "3"})
    assert "UCX_IB_GID_INDEX" not in outputs["environment"]


def test_an_unusable_node_ends_it_only_where_the_gate_is_required(facts: Any) -> None:
    logs = {"a": inspector_log(without_dmabuf())}
    with pytest.raises(ResourceError, match="fabric: a has no usable fabric: NICs cannot reach GPU memory"):
        facts(Api(logs))
    for gate in ("warn", "off"):
        outputs, said = facts(Api(logs), gate=gate)
        assert said.warnings[0].startswith("fabric: a has no usable fabric")
        assert outputs["findings"][0].startswith("a has no usable fabric")


def test_it_waits_and_then_says_who_has_not_told(facts: Any) -> None:
    starting = ResourceError("container is waiting to start: ContainerCreating")
    with pytest.raises(ResourceError) as caught:
        facts(Api({"a": LOG, "b": starting, "c": ""}), timeoutSeconds=0.05)
    assert "waiting for the fabric of b, c (2 pods (pod-b, ...): starting)" in str(caught.value)
    assert "fabric.discover: false" in str(caught.value)
    with pytest.raises(ResourceError, match="the API server to answer again"):
        facts(Api({"a": Unavailable("away")}), timeoutSeconds=0.05)
    with pytest.raises(Forbidden):
        facts(Api({"a": Forbidden("no logs for you")}))


def test_a_pod_is_asked_until_it_has_told_and_no_more(facts: Any) -> None:
    api = Api({"a": LOG, "b": ""})
    with pytest.raises(ResourceError):
        facts(api, timeoutSeconds=0.05)
    asked = api.asked
    assert asked > 2
    api.logs = {"a": LOG, "b": LOG}
    assert facts(api)[0]["nodes"] == ["a", "b"]
    assert api.asked == asked + 2


def test_a_node_that_is_away_is_left_out_with_a_note(facts: Any) -> None:
    outputs, said = facts(Api({"a": LOG, "b": ""}, ready=("a",)))
    assert outputs["nodes"] == ["a"]
    assert "fabric: b left out: not Ready, or cordoned" in said.lines


def test_nodes_get_labels_and_lose_them(facts: Any) -> None:
    api = Api({"a": LOG})
    outputs, _ = facts(api)
    assert api.patched["a"]["labels"]["pd-mi325x/fabric"] == "usable"
    assert api.patched["a"]["annotations"]["pd-mi325x/fabric-inspected-for"] == "pd-test"
    api.patched["a"]["labels"]["somebody/else"] = "stays"
    FabricFacts().delete("", {**INPUTS, **outputs, "stack": "another"}, Said().operation)
    assert "pd-mi325x/fabric" in api.patched["a"]["labels"]
    FabricFacts().delete("", {**INPUTS, **outputs}, Said().operation)
    assert api.patched["a"] == {"labels": {"somebody/else": "stays"}, "annotations": {}}


def test_labels_that_cannot_be_taken_away(facts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api, said = Api({"a": LOG}), Said()
    recorded = {**INPUTS, **facts(api)[0]}

    def gone(*_: Any, **__: Any) -> None:
        raise ResourceError("no way in")

    monkeypatch.setattr("infra.provider.fabric_facts.node_labels.remove", gone)
    monkeypatch.delenv("PULUMI_K8S_DELETE_UNREACHABLE", raising=False)
    with pytest.raises(ResourceError, match="kubeconfig file does not exist, and the last `pulumi up` recorded it"):
        FabricFacts().delete("", recorded, said.operation)
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    FabricFacts().delete("", recorded, said.operation)
    assert "labels of the nodes' fabric may be left on them: no way in" in said.lines[-1]


def test_who_may_not_patch_nodes_is_told_once_and_goes_on(facts: Any) -> None:
    api = Api({"a": LOG, "b": LOG}, may_patch=False)
    _, said = facts(api)
    assert len([line for line in said.lines if "me may not patch nodes" in line]) == 1
    assert api.patched == {}


def test_another_set_of_nodes_is_a_change(facts: Any) -> None:
    api = Api({"a": LOG, "b": LOG})
    outputs, _ = facts(api)
    olds, resource = {**INPUTS, **outputs}, FabricFacts()
    assert resource.changed(olds, INPUTS) is False
    assert resource.changed(olds, {**INPUTS, "generation": 2}) is True
    told_less = {key: value for key, value in olds.items() if key != "hardware"}
    assert resource.changed(told_less, INPUTS) is True, "by an earlier version of this project"
    api.logs = {"a": LOG, "b": LOG, "c": LOG}
    assert resource.changed(olds, INPUTS) is False, "c is not Ready yet"
    api.ready = ("a", "b", "c")
    assert resource.changed(olds, INPUTS) is True
    api.ready = ("a", "b")
    api.generation = 2
    assert resource.changed(olds, INPUTS) is True, "kubectl rollout restart"
    api.logs = {}
    assert resource.changed(olds, INPUTS) is False, "others say that the DaemonSet is gone"


def test_an_update_that_fails_keeps_what_was_known(facts: Any) -> None:
    outputs, _ = facts(api := Api({"a": LOG}))
    api.logs = {"a": inspector_log(without_dmabuf())}
    with pytest.raises(PartlyMade) as caught:
        FabricFacts(poll_seconds=0.01).update("id", {**INPUTS, **outputs}, INPUTS, Said().operation)
    assert caught.value.outputs == outputs
    assert caught.value.inputs == INPUTS
