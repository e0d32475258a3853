"""The gate's verdict: on every captured log, on runs that pass, and on each single thing that must fail them."""

import dataclasses
from typing import Any

import pytest
from rdma_gate_logs import (
    ENVIRONMENT,
    NICS,
    capture,
    gate_run,
    with_log,
)

from serving.rdma_gate.gate_run import GateRun, Side, Verdict
from serving.rdma_gate.verdict import judge

# What was asked of the captured runs, as far as one can tell: a TCP run "asked" for a NIC that it did not have.
MEGABYTE = 2**20


def captured(client: str, server: str | None = None, device: str = "mlx5_0:1", size: int = MEGABYTE) -> Verdict:
    logs = [capture(name) for name in (client, server or client)]
    codes = [1 if "exit code 1" in log else 255 if "Failed to run test" in log else 0 for log in logs]
    sides = [Side(log, code, f"node-{number}") for number, (log, code) in enumerate(zip(logs, codes, strict=True))]
    return judge(GateRun((device,), "host", size, 20, *sides, floor=1.0))


@pytest.mark.parametrize(
    ("client", "server", "device", "reason", "cause"),
    [
        ("ucx-1.22.0_tcp_proto-info-y", None, "mlx5_0:1", "one node: intra-node cfg#0 over tcp/lo", "fall back to tcp"),
        ("ucx-1.19.0_tcp_proto-info-y", None, "mlx5_0:1", "one node: intra-node cfg#0 over tcp/lo", "fall back to tcp"),
        ("ucx-1.22.0_tcp_proto-info-used", None, "mlx5_0:1", "intra-node cfg#0 over tcp/lo", "fall back to tcp"),
        ("ucx-1.22.0_tcp_emulation-off", None, "mlx5_0:1", "No zero-copy protocol found for get", "fall back to tcp"),
        ("ucx-1.22.0_bad-net-device", None, "mlx5_0:1", "network device 'mlx5_0:1' is not", "mlx5_0:1: not in the"),
        ("ucx-1.22.0_rc-missing", None, "mlx5_0:1", "transport 'rc' is not available", "built without it"),
        ("ucx-1.22.0_tcp_csv", None, "mlx5_0:1", "no table of an inter-node remote memory read", None),
        ("SYNTHETIC_rdma_new", None, "mlx5_1:1", "into rocm from rocm memory, host was asked", None),
        ("SYNTHETIC_rdma_old", None, "mlx5_1:1", "into rocm from rocm memory, host was asked", None),
        ("ucx-1.22.0_case0_rc_64K_default_fence_client", None, "rxe0:1", "remote access error", None),
        ("ucx-1.22.0_case1_rc_1M_client", "ucx-1.22.0_case1_rc_1M_server", "rxe0:1", "software RoCE", None),
        ("ucx-1.22.0_case1_rc_1M_used_client", "ucx-1.22.0_case1_rc_1M_server", "rxe0:1", "software RoCE", None),
        ("ucx-1.22.0_case3_tcp_1M_client", None, "mlx5_0:1", "'software emulation' over tcp/eth0", "fall back to tcp"),
        ("ucx-1.22.0_shm_client", "ucx-1.22.0_shm_server", "mlx5_0:1", "one node: intra-node cfg#0 over cma", None),
        ("ucx-1.22.0_tcp_loopback_client", "ucx-1.22.0_tcp_loopback_server", "mlx5_0:1", "over tcp/lo", "fall back"),
        ("ucx-1.22.0_eight_lanes_client", None, "mlx5_0:1", "one node: intra-node cfg#0 over tcp/fabric0", "tcp"),
    ],
)
def test_every_capture_fails_and_says_why(
    client: str, server: str | None, device: str, reason: str, cause: str | None
) -> None:
    verdict = captured(client, server, device)
    assert verdict.outcome == "fail"
    assert reason in verdict.reason
    assert "\n" not in verdict.reason
    assert verdict.cause is None if cause is None else verdict.cause is not None and cause in verdict.cause.what


def test_on_soft_roce_only_the_device_and_what_was_not_asked_for_are_wrong() -> None:
    """The capture is a good run in everything else: a name that passes for a NIC makes it pass."""
    verdict = captured("ucx-1.22.0_case1_rc_1M_client", "ucx-1.22.0_case1_rc_1M_server", "rxe0:1")
    assert {finding.check for finding in verdict.findings} == {"lane"}
    logs = [capture(f"ucx-1.22.0_case1_rc_1M_{side}").replace("rxe0", "abc0") for side in ("client", "server")]
    run = GateRun(("abc0:1",), "host", MEGABYTE, 20, Side(logs[0], 0, "a"), Side(logs[1], 0, "b"), floor=1.0)
    assert "not known to be a NIC" in judge(run).reason
    assert judge(dataclasses.replace(run, hardware=frozenset({"abc0:1"}))).outcome == "pass"


@pytest.mark.parametrize("layout", ["new", "old"])
@pytest.mark.parametrize(
    ("devices", "lanes"),
    [
        (NICS[:1], None),
        (NICS[:1], ["rc_verbs/mlx5_0:1"]),
        (NICS[:1], ["dc_mlx5/mlx5_0:1"]),
        (NICS[:1], ["rc_mlx5/mlx5_0:1/path0", "rc_mlx5/mlx5_0:1/path1"]),
        (("ionic_3:1",), ["rc_verbs/ionic_3:1"]),
        (NICS[:4], None),
        (NICS, None),
    ],
)
def test_runs_that_pass(devices: tuple[str, ...], lanes: list[str] | None, layout: str) -> None:
    verdict = judge(gate_run(devices, lanes, layout=layout))
    assert (verdict.outcome, verdict.findings, verdict.cause) == ("pass", (), None)
    assert verdict.gpu_direct == "direct"
    assert verdict.bandwidth_mib_s == 45_000
    assert verdict.bandwidth_gbps == pytest.approx(377.487, abs=0.001)
    assert [device.device for device in verdict.devices] == list(devices)
    assert "45,000 MiB/s (377.5 Gb/s)" in verdict.reason
    assert devices[0] in verdict.reason


@pytest.mark.parametrize(
    ("said", "reason", "gpu_direct"),
    [
        ({"scope": "intra-node"}, "both ends are on one node: intra-node cfg#2 over rc_mlx5", "unknown"),
        ({"memory": "host"}, "into host from host memory, rocm was asked for", "unknown"),
        ({"description": "software emulation"}, "by 'software emulation' over rc_mlx5/mlx5_0:1", "staged"),
        ({"description": "copy-out rocm_copy"}, "by 'copy-out rocm_copy' over rc_mlx5", "staged"),
        ({"description": "(?) RMA GET rendezvous using pipeline"}, "rendezvous using pipeline", "staged"),
        ({"description": "(?) zero-copy"}, "'(?) zero-copy'", "staged"),
        ({"description": "zero-copy rocm_copy"}, "'zero-copy rocm_copy'", "staged"),
        ({"description": ""}, "by ''", "staged"),
        ({"bandwidth": 10_000.0}, "10,000 MiB/s (83.9 Gb/s) is below the floor of 23,842 MiB/s", "direct"),
        ({"bandwidth": 0.0}, "0 MiB/s", "direct"),
        ({"environment": ENVIRONMENT.replace("ENABLE=n", "ENABLE=y")}, "EMULATION_ENABLE is not n", "direct"),
        ({"environment": "UCX_TLS=rc"}, "EMULATION_ENABLE is not n", "direct"),
        ({"exit_code": 1}, "the log ends with exit code 1, the container with 0", "direct"),
    ],
)
def test_one_wrong_thing_on_both_sides_fails(said: dict[str, Any], reason: str, gpu_direct: str) -> None:
    verdict = judge(gate_run(**said))
    assert verdict.outcome == "fail"
    assert reason in verdict.reason
    assert verdict.gpu_direct == gpu_direct


@pytest.mark.parametrize(
    ("side", "changes", "reason"),
    [
        ("client", {"exit_code": 1}, "client: exit code 1"),
        ("server", {"exit_code": 1}, "server: exit code 1"),
        ("client", {"exit_code": None}, "client: did not end by itself"),
        ("server", {"exit_code": None}, "server: did not end by itself"),
        ("server", {"log": ""}, "server: no table"),
        ("client", {"log": ""}, "client: no table"),
        ("client", {"node": "gpu-node-b"}, "both pods ran on gpu-node-b"),
        ("client", {"node": ""}, "not known on which nodes"),
    ],
)
def test_one_side_is_enough_to_fail(side: str, changes: dict[str, Any], reason: str) -> None:
    run = gate_run()
    changed = {side: dataclasses.replace(getattr(run, side), **changes)}
    verdict = judge(dataclasses.replace(run, **changed))
    assert verdict.outcome == "fail"
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" rma(rc_mlx5/mlx5_0:1/path0)", " rma_am(tcp/eth0)", "remote memory goes over tcp/eth0 (endpoint, rma_am)"),
        (" rma(rc_mlx5/mlx5_0:1/path0)", " rma(rc_mlx5/mlx5_0:1 tcp/eth0)", "goes over tcp/eth0 (endpoint, rma)"),
        ("inter-node cfg#2 rma", "intra-node cfg#2 rma", "both ends are on one node: intra-node cfg#2"),
        ("|   0..64 | copy-out ", "|   0..1G | copy-out ", "by 'copy-out'"),  # the message's size is 256M
        ("| 65..inf | zero-copy ", "|  65..1G | zero-copy ", "no row for messages without upper bound"),
        (
            "|   0..64 | copy-out ",
            "| 0 to 64 | copy-out ",
            "the table of cfg#2 is cut off, lacks rows or is of an unknown form",
        ),
        (
            "Final:                   100 ",
            "Final:                     0 ",
            "figures of 0 iterations, 100 were asked for",
        ),
        (
            "Final:                   100 ",
            "Final:                     1 ",
            "figures of 1 iterations, 100 were asked for",
        ),
        ("Final:                   100 ", "Final:                   101 ", "figures of 101 iterations, 100 were"),
        ("\nexit code 0\n", "\n", "the log does not end with `exit code N`"),
    ],
)
def test_one_wrong_line_at_the_client_fails(old: str, new: str, reason: str) -> None:
    run = gate_run()
    assert old in run.client.log
    verdict = judge(with_log(run, "client", run.client.log.replace(old, new)))
    assert verdict.outcome == "fail"
    assert verdict.reason.startswith("client: ")
    assert reason in verdict.reason


def test_a_table_without_its_last_border_fails() -> None:
    run = gate_run()
    lines = run.server.log.splitlines()
    assert lines[-2].endswith("-+")
    verdict = judge(with_log(run, "server", "\n".join([*lines[:-2], lines[-1]])))
    assert verdict.reason == "server: the table of cfg#2 is cut off, lacks rows or is of an unknown form"


@pytest.mark.parametrize(
    ("line", "replacement", "reason"),
    [
        ("Message size: 268435456", "Message size: 8        ", "message size is 8, 268435456 was asked for"),
        ("Send memory:  rocm", "Send memory:  host", "send memory is host, rocm was asked for"),
        ("Test:         get latency", "Test:         put latency", "ucp_get was asked for"),
    ],
)
def test_a_server_that_tested_something_else_fails(line: str, replacement: str, reason: str) -> None:
    run = gate_run()
    assert line in run.server.log
    verdict = judge(with_log(run, "server", run.server.log.replace(line, replacement)))
    assert verdict.outcome == "fail"
    assert reason in verdict.reason


def test_more_than_the_line_rate_is_not_believed() -> None:
    run = dataclasses.replace(gate_run(bandwidth=60_000.0), line_rate=400.0)
    assert "503.3 Gb/s is more than the line rate of 400 Gb/s" in judge(run).reason


def test_a_row_that_was_never_used_proves_nothing() -> None:
    client = capture("ucx-1.22.0_case1_rc_1M_used_client").replace("rxe0:1", "abc0:1").replace("|    21 |", "|     0 |")
    server = capture("ucx-1.22.0_case1_rc_1M_server").replace("rxe0:1", "abc0:1")
    run = GateRun(
        ("abc0:1",),
        "host",
        MEGABYTE,
        20,
        Side(client, 0, "a"),
        Side(server, 0, "b"),
        1.0,
        hardware=frozenset({"abc0:1"}),
    )
    assert "used 0 times" in judge(run).reason
    assert judge(with_log(run, "client", client.replace("|     0 | 478", "|    21 | 478"))).outcome == "pass"


@pytest.mark.parametrize(
    "changes", [{"devices": ()}, {"floor": 0.0}, {"floor": float("nan")}, {"message_size": 0}, {"iterations": 0}]
)
def test_a_run_that_nothing_could_fail_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a run needs"):
        judge(dataclasses.replace(gate_run(), **changes))
