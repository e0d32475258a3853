"""When the gate runs, what it does with its Jobs, and how it ends. The cluster is played (gate_cluster.py)."""

from typing import Any

import pytest
from gate_cluster import INPUTS, Api, Json, Said

from infra.provider import rdma_gate, rdma_gate_round
from infra.provider.kubernetes_api import Forbidden
from infra.provider.rdma_gate import RdmaGate
from infra.provider.rdma_gate_round import terms_of
from infra.provider.resource import Interrupted, PartlyMade, ResourceError


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    def there(api: Api) -> Api:
        monkeypatch.setattr(rdma_gate, "_api", lambda properties: api)
        monkeypatch.setattr(rdma_gate_round, "_POLL_SECONDS", 0.01)
        return api

    return there


def created(said: Said | None = None, **inputs: Any) -> Json:
    return RdmaGate().create({**INPUTS, **inputs}, (said or Said()).operation)[1]


def test_every_node_reads_and_is_read_and_nothing_is_left(use: Any) -> None:
    api, said = use(Api()), Said()
    outputs = created(said)
    assert sorted(api.made) == sorted(f"rdma-gate-{n}-{side}" for n in range(3) for side in ("client", "server"))
    assert api.jobs == {}
    assert api.at_once == 2, "three nodes: one pair at a time"
    assert (outputs["state"], outputs["outcome"]) == ("passed", "passed")
    assert outputs["summary"] == "RDMA gate: 9 runs passed between 3 nodes, GPU memory direct, 378 Gb/s at least"
    assert {(it["client"], it["server"]) for it in outputs["verdicts"]} == {("a", "b"), ("b", "c"), ("c", "a")}
    assert outputs["summary"] in said.lines


def test_a_failed_gate_is_recorded_and_its_logs_stay(use: Any) -> None:
    api = use(Api(bad=("b",)))
    with pytest.raises(PartlyMade) as caught:
        created()
    lines = str(caught.value).splitlines()
    assert lines[0] == "RDMA gate: 3 of 9 runs failed between 3 nodes; nothing serves (fabric.gate: required)"
    assert lines[1].startswith("  b reads from c over mlx5_0:1: ")
    assert all("lane tcp/eth0" in line for line in lines[1:4])
    assert "kubectl --namespace space logs job/rdma-gate-1-client" in lines[-1]
    assert sorted(api.jobs) == ["rdma-gate-1-client", "rdma-gate-1-server"]
    assert all(job["spec"]["ttlSecondsAfterFinished"] is None for job in api.jobs.values())
    assert caught.value.outputs["outcome"] == "failed"
    RdmaGate().delete("", {**INPUTS, **caught.value.outputs}, Said().operation)
    assert api.jobs == {}


def test_warn_goes_on_with_the_same_lines(use: Any) -> None:
    use(Api(bad=("b",)))
    said = Said()
    outputs = created(said, mode="warn")
    assert outputs["state"] == "warned"
    assert said.warnings[0] == "RDMA gate: 3 of 9 runs failed between 3 nodes"
    assert any("lane tcp/eth0" in line for line in said.warnings)


@pytest.mark.parametrize("mode", ["off", "none"])
def test_where_nothing_runs_no_job_is_made(use: Any, mode: str) -> None:
    api = use(Api())
    outputs = created(mode=mode, reason="because", template={}, nodes=[])
    assert (outputs["state"], outputs["summary"], outputs["outcome"]) == (mode, "because", "")
    assert api.made == []
    assert RdmaGate().planned({**INPUTS, "mode": mode, "reason": "because"}) == outputs
    assert RdmaGate().planned(INPUTS) == {}


def state(use: Any, **inputs: Any) -> Json:
    """Of a gate that was made with these inputs, passed or not."""
    try:
        return {**INPUTS, **inputs, **created(**inputs)}
    except PartlyMade as failed:
        return {**INPUTS, **inputs, **failed.outputs}


def test_what_needs_another_gate_is_a_replacement(use: Any) -> None:
    use(Api())
    passed, resource = state(use), RdmaGate()
    image = {**INPUTS["template"], "spec": {}}
    assert resource.changed(passed, INPUTS) is False
    assert resource.changed(passed, {**INPUTS, "template": image}) == ["template"]
    assert resource.changed(passed, {**INPUTS, "terms": {**INPUTS["terms"], "floorGbps": 390}}) == ["terms"]
    assert resource.changed(passed, {**INPUTS, "nodes": ["a", "b", "c", "d"]}) == ["nodes"]
    for update in ({"nodes": ["a", "b"]}, {"kubeconfig": "renewed"}, {"mode": "warn"}, {"mode": "off"}):
        assert resource.changed(passed, {**INPUTS, **update}) is True, update
    fewer = {**passed, "nodes": ["a", "b"]}
    assert resource.changed(fewer, INPUTS) is True, "c was tested, and has only been away"


def test_a_gate_that_has_to_run_for_the_first_time_is_a_replacement(use: Any) -> None:
    """So that engines, which hold the GPUs, go first."""
    use(Api())
    for mode in ("off", "none"):
        olds = state(use, mode=mode, nodes=[], template={})
        assert isinstance(RdmaGate().changed(olds, INPUTS), list)
    assert RdmaGate().changed({**state(use), "outcome": ""}, INPUTS) == ["mode"]


def test_required_tries_again_what_failed_and_warn_does_not(use: Any) -> None:
    use(Api(bad=("b",)))
    olds, resource = state(use), RdmaGate()
    assert resource.changed(olds, INPUTS) == ["mode"]
    warn = {**INPUTS, "mode": "warn"}
    assert resource.changed(olds, warn) is True
    said = Said()
    outputs = resource.update("", olds, warn, said.operation)
    assert (outputs["state"], outputs["verdicts"]) == ("warned", olds["verdicts"])
    assert said.warnings
    assert resource.changed({**warn, **outputs}, warn) is False
    assert resource.changed({**warn, **outputs}, INPUTS) == ["mode"]


def test_switched_off_it_takes_its_jobs_away(use: Any) -> None:
    api = use(Api(bad=("b",)))
    olds = state(use)
    assert api.jobs
    off = {**INPUTS, "mode": "off", "reason": "fabric.gate is off"}
    assert RdmaGate().update("", olds, off, Said().operation)["state"] == "off"
    assert api.jobs == {}


def test_an_interruption_takes_the_jobs_away(use: Any) -> None:
    api = use(Api(phases=dict.fromkeys("abc", "Running")))
    with pytest.raises(Interrupted):
        created(Said(cancelled=True))
    assert api.made
    assert api.jobs == {}


def test_a_pod_that_does_not_start_is_a_failed_pair(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdma_gate_round, "_START_SECONDS", 0.05)
    api = use(Api(phases={"b": "Pending"}))
    with pytest.raises(PartlyMade) as caught:
        created()
    said = str(caught.value)
    assert "a reads from b over any NIC: the server's pod did not start on b within 0 s (rdma-gate-0-server-x: " in said
    assert "b reads from c over any NIC: the client's pod did not start on b" in said
    assert "rdma-gate-0-server" not in api.jobs, "it would take the GPUs once it starts"


def test_a_pod_that_is_never_seen_to_end_is_a_failed_pair(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was evicted, and its Job has deleted it."""
    monkeypatch.setattr(rdma_gate_round, "deadline_seconds", lambda devices: 0)
    monkeypatch.setattr(rdma_gate_round, "_LATE_SECONDS", 0.05)
    api = use(Api(phases={"b": "Running"}))
    outputs = created(mode="warn")
    assert any("'s pod did not end on b within 0 s" in it["why"] for it in outputs["verdicts"])
    assert "rdma-gate-1-client" not in api.jobs, "it would still have the GPUs"


def pod(node: str, stack: str) -> Json:
    """One that holds the GPUs of a node."""
    labels = {"app.kubernetes.io/name": "pd-mi325x", "app.kubernetes.io/instance": stack}
    asked = {"requests": {"amd.com/gpu": "8"}}
    metadata = {"namespace": "team", "name": "job", "labels": labels}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"resources": asked}]}}


def test_nodes_that_somebody_else_holds_are_left_out_and_named(use: Any) -> None:
    api, said = use(Api()), Said()
    api.pods = [pod("d", "another"), pod("a", "pd-test")]
    outputs = created(said, nodes=["a", "b", "c", "d"])
    assert outputs["summary"].endswith("not tested: d (held by team/job)")
    assert outputs["known"] == ["a", "b", "c", "d"]
    api.pods = [pod("b", "another")]
    with pytest.raises(ResourceError, match=r"needs 3 nodes with free amd.com/gpu, there are 2 \(a, c\): b is held by"):
        created()
    api.pods = Forbidden("no")
    assert created()["state"] == "passed"


def test_a_node_that_was_not_tested_stays_so_after_an_update(use: Any) -> None:
    api = use(Api())
    api.pods = [pod("d", "another")]
    nodes, resource = ["a", "b", "c", "d"], RdmaGate()
    olds = state(use, nodes=nodes)
    note = "; not tested: d (held by team/job)"
    for update in ({"nodes": nodes, "kubeconfig": "renewed"}, {"nodes": nodes, "mode": "warn"}):
        said = Said()
        outputs = resource.update("", olds, {**INPUTS, **update}, said.operation)
        assert outputs["summary"].endswith(note)
        assert outputs["untested"] == {"d": "team/job"}
    gone = resource.update("", olds, {**INPUTS, "nodes": ["a", "b", "c"]}, Said().operation)
    assert "not tested" not in gone["summary"]
    back = resource.update("", {**INPUTS, **gone}, {**INPUTS, "nodes": nodes}, Said().operation)
    assert back["summary"].endswith(note), "it was only away"


def test_more_engines_than_tested_nodes_need_another_gate(use: Any) -> None:
    """The fourth engine would land on d, of which nothing is known."""
    api = use(Api())
    api.pods = [pod("d", "another")]
    nodes = ["a", "b", "c", "d"]
    olds, grown = state(use, nodes=nodes), {**INPUTS, "nodes": nodes, "replicas": 4}
    assert RdmaGate().changed(olds, {**INPUTS, "nodes": nodes}) is False
    assert RdmaGate().changed(olds, grown) == ["replicas"]
    with pytest.raises(ResourceError, match=r"needs 4 nodes .* d is held by team/job"):
        RdmaGate().create(grown, Said().operation)
    api.pods = []
    outputs = RdmaGate().create(grown, Said().operation)[1]
    assert RdmaGate().changed({**grown, **outputs}, grown) is False
    assert outputs["summary"].startswith("RDMA gate: 12 runs passed between 4 nodes")


def test_of_many_runs_that_failed_a_dozen_are_shown_and_the_rest_is_counted(use: Any) -> None:
    use(Api(bad=("a", "b", "c", "d", "e", "f")))
    with pytest.raises(PartlyMade) as caught:
        created(nodes=["a", "b", "c", "d", "e", "f"])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("RDMA gate: 18 of 18 runs failed between 6 nodes")
    assert len([line for line in lines if " reads from " in line]) == 12
    assert lines[13] == "  and 6 more, in the verdicts of `pulumi stack export`"
    assert len([line for line in lines if line.startswith("  probable cause: ")]) == 1, "each cause once"


def test_without_an_inspector_the_nodes_are_looked_up(use: Any) -> None:
    use(Api())
    clients = {it["client"] for it in created(nodes=[])["verdicts"]}
    assert clients == {"a", "b", "d"}


def test_engines_of_a_stack_that_had_no_gate_are_said(use: Any) -> None:
    use(Api(service={"metadata": {}}))
    with pytest.raises(ResourceError, match=r"RayService space/llm holds the GPUs.*fabric.gate: off"):
        created()
    use(Api(service={"metadata": {"deletionTimestamp": "now"}}))
    assert created()["state"] == "passed"


def test_that_no_device_is_hardware_is_not_that_nobody_has_looked() -> None:
    """Pulumi drops an input without value."""
    terms = {key: value for key, value in INPUTS["terms"].items() if key != "hardware"}
    assert terms_of({"terms": terms}).hardware is None
    assert terms_of({"terms": {**terms, "hardware": []}}).hardware == frozenset()
    assert terms_of(INPUTS).hardware == {"mlx5_0:1", "mlx5_1:1"}


def test_without_a_nic_or_its_speed_no_pod_is_started(use: Any) -> None:
    api = use(Api())
    outputs = created(mode="warn", terms={**INPUTS["terms"], "devices": [], "linkGbps": 0})
    assert (outputs["state"], len(outputs["verdicts"])) == ("warned", 3)
    assert "no RDMA device to test" in outputs["verdicts"][0]["why"]
    with pytest.raises(ResourceError, match=r"speed of the NICs' links is not known; set fabric.floorGbps"):
        created(terms={**INPUTS["terms"], "linkGbps": 0})
    assert api.made == []


def test_a_cluster_that_is_gone_does_not_keep_a_stack(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api, said = use(Api()), Said()
    olds = state(use)

    def gone(path: str, **query: Any) -> Any:
        raise ResourceError("kubeconfig does not exist")

    use(api).list = gone
    monkeypatch.delenv("PULUMI_K8S_DELETE_UNREACHABLE", raising=False)
    with pytest.raises(ResourceError, match="the last `pulumi up` recorded it"):  # it is only the file that is gone
        RdmaGate().delete("", olds, said.operation)
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    RdmaGate().delete("", olds, said.operation)
    assert "may be left in namespace space: kubeconfig does not exist" in said.lines[-1]
