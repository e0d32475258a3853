"""From the logs of a pair to a record for each run."""

import dataclasses

import pytest

from serving.kubernetes_names import RDMA_GATE
from serving.rdma_gate.framing import mark
from serving.rdma_gate.pairs import Pair
from serving.rdma_gate.result import Terms, not_run, results_of
from tools.rehearsal.fabric_stand_in import LANE_VARIABLE, gate_log, play_of

NICS = tuple(f"mlx5_{number}:1" for number in range(8))
PAIR = Pair(0, "node-a", "node-b")
TERMS = Terms(NICS, "rocm", link_gbps=400, hardware=frozenset(NICS))


def logs(**said: str) -> tuple[str, str]:
    return gate_log("client", NICS, **said), gate_log("server", NICS, **said)


def test_all_runs_pass_and_the_record_is_small() -> None:
    results = results_of(PAIR, TERMS, *logs())
    assert [result.nic for result in results] == [*NICS, "all"]
    assert all(result.passed and result.gpu_direct == "direct" and not result.why for result in results)
    first = results[0].as_dict()
    assert first["lane"] == "rc_mlx5/mlx5_0:1/path0"
    assert (first["gbps"], first["floor_gbps"]) == (377.5, 200.0)
    assert results[-1].floor_gbps == 252.0, "of one GPU's link, not of eight NICs"
    assert len(str(first)) < 300


def test_a_fall_back_says_its_lane_its_cause_and_the_fix() -> None:
    said = {"lane": "tcp/eth0", "description": "software emulation"}
    result = results_of(PAIR, TERMS, *logs(**said, environment="UCX_TLS=rc,tcp,sm,self,rocm_copy"))[0]
    assert not result.passed
    line = str(result)
    assert line.startswith("node-a reads from node-b over mlx5_0:1: ")
    for words in ("lane tcp/eth0", "378 Gb/s"):
        assert words in line
    assert "\n" not in line + result.cause
    for words in ("lets UCX fall back to tcp", "name RDMA and no tcp there"):
        assert words in result.cause


def test_tcp_is_not_blamed_on_a_variable_that_names_none() -> None:
    result = results_of(PAIR, TERMS, *logs(lane="tcp/eth0", description="software emulation"))[0]
    assert not result.passed
    assert "lets UCX fall back" not in result.cause


def test_more_nics_than_the_table_names_are_proven_by_their_counters() -> None:
    client, server = logs()
    silent = client.replace('"rdma_bytes": {', '"rdma_bytes": null, "was": {')
    assert silent != client
    everything = results_of(PAIR, TERMS, silent, server)[-1]
    assert not everything.passed
    assert "nothing shows that" in everything.why
    lazy = results_of(PAIR, TERMS, client.replace('"mlx5_7:1": 33', '"mlx5_7:1": 3'), server)[-1]
    assert "mlx5_7:1 received" in lazy.why


def test_a_run_that_is_not_in_the_log_fails() -> None:
    client, server = logs()
    cut = client[: client.index(mark("begin", run="mlx5_3:1", devices=["mlx5_3:1"], gpu=None))]
    results = results_of(PAIR, TERMS, cut, server)
    assert [result.passed for result in results] == [True] * 3 + [False] * 6
    assert all(not result.passed for result in results_of(PAIR, TERMS, "", ""))


def test_pods_that_ran_on_one_node_prove_nothing() -> None:
    result = results_of(PAIR, TERMS, *logs(), {"client": "node-a", "server": "node-a"})[0]
    assert "both pods ran on node-a" in result.why


@pytest.mark.parametrize(("floor", "passes"), [(370, True), (380, False)])
def test_a_floor_that_is_given_is_that_of_one_nic(floor: float, passes: bool) -> None:
    """The stand-in's logs say 377.5 Gb/s, for all NICs as well."""
    results = results_of(PAIR, dataclasses.replace(TERMS, floor_gbps=floor), *logs())
    assert {result.floor_gbps for result in results} == {floor}
    assert {result.passed for result in results} == {passes}


def test_a_pair_whose_pods_did_not_start() -> None:
    assert str(not_run(PAIR, TERMS, "the server's pod did not start")).startswith(
        "node-a reads from node-b over any NIC: the server's pod did not start"
    )


@pytest.mark.parametrize(
    ("devices", "lane", "unnamed"),
    [
        ([f"ionic_{number}:1" for number in range(4)], "rc_verbs/{}/path0", "ionic_3:1"),
        ([f"mlx5_{number}:1" for number in range(10, 14)], "rc_mlx5/{}/path0", "mlx5_13:1"),
        ([f"rocep{number}s0f0:1" for number in range(134, 138)], "rc_mlx5/{}/path0", "rocep137s0f0:1"),
    ],
)
def test_four_nics_whose_names_do_not_fit_are_proven_by_their_counters(
    devices: list[str], lane: str, unnamed: str
) -> None:
    terms = dataclasses.replace(TERMS, devices=tuple(devices), hardware=frozenset(devices))
    client, server = (gate_log(side, devices, lane=lane) for side in ("client", "server"))
    assert all(result.passed for result in results_of(PAIR, terms, client, server))
    uncounted = client.replace('"rdma_bytes": {', '"rdma_bytes": null, "was": {')
    *single, everything = results_of(PAIR, terms, uncounted, server)
    assert all(result.passed for result in single), "a table that names its NIC is enough"
    assert f"nothing shows that {unnamed} is in use" in everything.why


def test_counters_that_contradict_the_table_fail_one_nic_as_well() -> None:
    client, server = logs()
    still = client.replace('"rdma_bytes": {"mlx5_0:1": 26843545600}', '"rdma_bytes": {"mlx5_0:1": 0}')
    assert still != client
    first, second, *_ = results_of(PAIR, TERMS, still, server)
    assert "mlx5_0:1 received 0 bytes by RDMA" in first.why
    assert second.passed


def test_more_than_the_links_can_carry_is_not_believed() -> None:
    """The stand-in's logs say 377.5 Gb/s; a line rate is that of all NICs of a run together."""
    single, *_, everything = results_of(PAIR, dataclasses.replace(TERMS, link_gbps=300), *logs())
    assert "377.5 Gb/s is more than the line rate of 300 Gb/s" in single.why
    assert everything.passed


def test_the_node_that_the_client_s_pod_ran_on_counts_and_not_the_one_it_was_meant_for() -> None:
    moved = results_of(PAIR, TERMS, *logs(), {"client": "node-b", "server": "node-b"})[0]
    assert "both pods ran on node-b" in moved.why
    elsewhere = results_of(PAIR, TERMS, *logs(), {"client": "node-b", "server": "node-a"})[0]
    assert elsewhere.passed


@pytest.mark.parametrize(
    ("hardware", "passes"),
    [(frozenset({"soft0:1", "ionic_0:1"}), True), (frozenset({"mlx5_0:1"}), False), (frozenset[str](), False)],
)
@pytest.mark.parametrize("device", ["soft0:1", "ionic_0:1"])
def test_a_nic_is_what_the_inspector_says_is_one_whatever_its_name(
    device: str, hardware: frozenset[str], passes: bool
) -> None:
    terms = Terms((device,), "rocm", link_gbps=400, hardware=hardware)
    client, server = (gate_log(side, [device], lane="rc_verbs/{}/path0") for side in ("client", "server"))
    (result,) = results_of(PAIR, terms, client, server)
    assert result.passed is passes
    assert passes or "not known to be a NIC" in result.why


@pytest.mark.parametrize(("device", "passes"), [("soft0:1", False), ("ionic_0:1", True)])
def test_where_nothing_inspected_the_nodes_a_name_that_drivers_give_is_a_nic(device: str, passes: bool) -> None:
    terms = Terms((device,), "rocm", floor_gbps=200)
    client, server = (gate_log(side, [device], lane="rc_verbs/{}/path0") for side in ("client", "server"))
    assert results_of(PAIR, terms, client, server)[0].passed is passes


def test_a_gate_that_fails_can_be_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/explanation/rdma.md says: PD_REHEARSAL_LANE=tcp/eth0 make rehearse STACK=pd-2p1d."""

    def said(side: str) -> str:
        command = ["-m", "serving.rdma_gate.run", side, "--devices", ",".join(NICS), "--memory", "rocm"]
        play = play_of(RDMA_GATE, "pod", "node", command[1:])
        assert play is not None
        return play.log

    assert all(result.passed for result in results_of(PAIR, TERMS, said("client"), said("server")))
    monkeypatch.setenv(LANE_VARIABLE, "tcp/eth0")
    results = results_of(PAIR, TERMS, said("client"), said("server"))
    assert not any(result.passed for result in results)
    assert all("tcp/eth0" in result.why for result in results)
