"""Endpoint lines and protocol tables in captured logs of UCX: every layout, whole and damaged."""

import math

import pytest
from rdma_gate_logs import capture, gate_run, lane_list, new_table, old_table

from serving.rdma_gate.ucx_lanes import Lane, parse_lanes
from serving.rdma_gate.ucx_tables import Memory, ProtocolLog, Table, parse_protocols

RXE = Lane("rc_verbs", "rxe0:1")


def read_table(log: str) -> Table:
    (table,) = (table for table in parse_protocols(log).tables if table.operation == "remote memory read")
    return table


@pytest.mark.parametrize(
    ("name", "scope", "open_row"),
    [
        ("ucx-1.19.0_tcp_proto-info-y", "intra-node", ("software emulation", "tcp/lo", None)),
        ("ucx-1.19.0_tcp_loopback_server", "intra-node", ("software emulation", "tcp/lo", None)),
        ("ucx-1.22.0_tcp_proto-info-y", "intra-node", ("software emulation", "tcp/lo", None)),
        ("ucx-1.22.0_tcp_proto-info-used", "intra-node", ("software emulation", "tcp/lo", 6)),
        ("ucx-1.22.0_case1_rc_1M_client", "inter-node", ("zero-copy", "rc_verbs/rxe0:1", None)),
        ("ucx-1.22.0_case1_rc_1M_server", "inter-node", ("zero-copy", "rc_verbs/rxe0:1", None)),
        ("ucx-1.22.0_case1_rc_1M_used_client", "inter-node", ("zero-copy", "rc_verbs/rxe0:1", 21)),
        ("ucx-1.22.0_case3_tcp_1M_client", "inter-node", ("software emulation", "tcp/eth0", None)),
        ("ucx-1.22.0_shm_server", "intra-node", ("zero-copy", "cma/memory", None)),
        ("SYNTHETIC_rdma_old", "inter-node", ("zero-copy", "rc_mlx5/mlx5_1:1/path0", None)),
        ("SYNTHETIC_rdma_new", "inter-node", ("zero-copy", "rc_mlx5/mlx5_1:1/path0", None)),
    ],
)
def test_reads_the_table_of_remote_memory_reads(name: str, scope: str, open_row: tuple[str, str, int | None]) -> None:
    table = read_table(capture(name))
    row = table.row_for(math.inf)
    assert table.scope == scope
    assert row is not None
    assert (row.description, str(row.lanes), row.count) == open_row
    assert table.complete


def test_reads_ranges_memory_and_paths() -> None:
    table = read_table(capture("SYNTHETIC_rdma_new"))
    assert [(row.first, row.last) for row in table.rows] == [(0, 64), (65, math.inf)]
    assert (table.local, table.remote) == (Memory("rocm", "GPU0"), Memory("rocm"))
    assert table.rows[0].lanes.lanes == (Lane("rc_mlx5", "mlx5_1:1", path=0),)
    assert table.config == 2
    host = read_table(capture("ucx-1.22.0_case1_rc_1M_client"))
    assert (host.local, host.remote) == (Memory("host"), Memory("host"))


def test_sizes_in_units_are_bytes() -> None:
    lane = "rc_mlx5/mlx5_0:1"
    rows = [("0", "short", lane), ("1..8191", "copy-out", lane), ("8K..1M", "zero-copy", lane)]
    operation = "remote memory read by ucp_get* into cuda memory from cuda/dev[3]"
    log = "\n".join(new_table("perftest inter-node cfg#0", operation, rows))
    table = read_table(log)
    assert [(row.first, row.last) for row in table.rows] == [(0, 0), (1, 8191), (8192, 2**20)]
    assert table.remote == Memory("cuda", "dev[3]")
    assert table.row_for(math.inf) is None


@pytest.mark.parametrize(
    ("name", "feature", "lanes"),
    [
        ("ucx-1.22.0_tcp_proto-info-y", "rma_am", (Lane("tcp", "lo"),)),
        ("ucx-1.19.0_tcp_proto-info-y", "rma_am", (Lane("tcp", "lo"),)),
        ("ucx-1.22.0_case1_rc_1M_client", "rma", (RXE,)),
        ("ucx-1.22.0_shm_client", "rma", (Lane("sysv", "memory"), Lane("posix", "memory"))),
    ],
)
def test_reads_endpoint_lines(name: str, feature: str, lanes: tuple[Lane, ...]) -> None:
    (endpoint,) = parse_protocols(capture(name)).endpoints
    assert endpoint.features == {feature: lanes}


@pytest.mark.parametrize(
    ("config", "lanes", "complete"),
    [
        ("rc_mlx5/mlx5_0:1/path0", ["rc_mlx5/mlx5_0:1/path0 100"], True),
        ("tcp/eth0", ["tcp/eth0 100"], True),
        ("34% on tcp/a, 34% on tcp/b and 32% on tcp/c", ["tcp/a 34", "tcp/b 34", "tcp/c 32"], True),
        ("50% on rc_verbs/a:1 + 50% on rc_verbs/b:1", ["rc_verbs/a:1 50", "rc_verbs/b:1 50"], True),
        (
            "rc_mlx5/mlx5_0:1 50% on path0 and 50% on path1",
            ["rc_mlx5/mlx5_0:1/path0 50", "rc_mlx5/mlx5_0:1/path1 50"],
            True,
        ),
        ("rc_mlx5/mlx5_0:1/path0 50% on and 50% on", ["rc_mlx5/mlx5_0:1/path0 50"] * 2, True),
        ("34% on tcp/a, 34% on tcp/b", ["tcp/a 34", "tcp/b 34"], False),
        ("ctrl lane 0, rc_mlx5/mlx5_0:1", ["rc_mlx5/mlx5_0:1 100"], False),
        ("", [], False),
        ("something new", [], False),
    ],
)
def test_lanes(config: str, lanes: list[str], complete: bool) -> None:
    parsed = parse_lanes(config)
    assert [f"{lane} {lane.share}" for lane in parsed.lanes] == lanes
    assert parsed.complete is complete


@pytest.mark.parametrize("name", ["ucx-1.22.0_eight_lanes_client", "ucx-1.19.0_eight_lanes_client"])
def test_ucx_names_only_the_lanes_that_fit(name: str) -> None:
    table = parse_protocols(capture(name)).tables[-1]
    assert table.complete
    lanes = table.rows[-1].lanes
    assert [lane.device for lane in lanes.lanes] == [f"fabric{index}" for index in range(6)]
    assert not lanes.complete


def test_three_lanes_are_named_with_their_shares() -> None:
    lanes = parse_protocols(capture("ucx-1.22.0_three_lanes_client")).tables[-1].rows[-1].lanes
    assert [(lane.device, lane.share) for lane in lanes.lanes] == [("fabric0", 34), ("fabric1", 34), ("fabric2", 32)]
    assert lanes.complete


@pytest.mark.parametrize("count", [1, 2, 4, 5, 8])
def test_a_device_cut_in_two_is_not_taken_for_a_device(count: int) -> None:
    """Names of every length, so that UCX's cut falls on every character of a lane."""
    for length in range(1, 150):
        lanes = [f"rc_mlx5/{'m' * length}_{index}:1/path0" for index in range(count)]
        parsed = parse_lanes(lane_list(lanes))
        assert {str(lane) for lane in parsed.lanes} <= set(lanes)
        assert parsed.complete is (len(parsed.lanes) == count)


def without_stamps(log: str, count: int) -> list[list[str]]:
    """Tables as UCX wrote them, `count` lines each."""
    lines = [line.split("]   ", 1)[1] for line in log.splitlines() if "]   +" in line or "]   |" in line]
    return [lines[start : start + count] for start in range(0, len(lines), count)]


def test_hand_made_tables_are_in_the_layout_of_real_ones() -> None:
    fabric = [f"tcp/fabric{index}" for index in range(8)]
    write = "remote memory write by ucp_put* from host memory to host"
    title = "perftest intra-node cfg#0"
    for name, table, lanes, count in (
        ("ucx-1.22.0_eight_lanes_client", new_table, fabric, 8),
        ("ucx-1.22.0_three_lanes_client", new_table, fabric[:3], 8),
        ("ucx-1.19.0_eight_lanes_client", old_table, fabric, 5),
        ("ucx-1.19.0_two_lanes_client", old_table, fabric[:2], 5),
    ):
        real = without_stamps(capture(name), count)
        assert table(title, write, [("0..inf", "zero-copy", lane_list(lanes))]) == real[0], name
    read = "remote memory read by ucp_get*(multi) into host memory from host"
    rows = [("0..477", "copy-out", "rc_verbs/rxe0:1"), ("478..inf", "zero-copy", "rc_verbs/rxe0:1")]
    real = capture("ucx-1.22.0_case1_rc_1M_server")
    for line in new_table("perftest inter-node cfg#0", read, rows):
        assert line in real


def test_tables_of_two_processes_in_one_log_do_not_mix() -> None:
    one, other = capture("ucx-1.22.0_case1_rc_1M_client"), capture("ucx-1.22.0_case3_tcp_1M_client")
    first, second = one.splitlines(), other.splitlines()
    mixed = [line for pair in zip(first, [*second, *[""] * (len(first) - len(second))], strict=True) for line in pair]
    tables = parse_protocols("\n".join(mixed)).tables
    assert all(table.complete for table in tables)
    assert sorted(str(table.rows[-1].lanes) for table in tables) == ["rc_verbs/rxe0:1"] * 4 + ["tcp/eth0"] * 3


@pytest.mark.parametrize("name", ["ucx-1.22.0_case1_rc_1M_client", "ucx-1.19.0_tcp_proto-info-y"])
@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda log: log.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda log: log.replace("| ", "\x1b[1;32m| ").replace("UCX", "\x1b[31mUCX\x1b[0m"), id="colours"),
        pytest.param(lambda log: "".join(f"2026-11-30T06:37:52.123456789Z {x}\n" for x in log.split("\n")), id="times"),
        pytest.param(lambda log: "".join(f"[pod/gate-0/perftest] {x}\n" for x in log.split("\n")), id="pod names"),
        pytest.param(lambda log: log.replace("\n[1795", "[1795"), id="glued lines"),
    ],
)
def test_what_a_container_adds_changes_nothing(name: str, changed: type[str]) -> None:
    def seen(log: str) -> ProtocolLog:
        return parse_protocols(log)

    assert seen(changed(capture(name))) == seen(capture(name))
    assert seen(capture(name)).tables


@pytest.mark.parametrize("layout", ["new", "old"])
def test_a_table_cut_anywhere_is_not_complete(layout: str) -> None:
    log = gate_run(layout=layout).server.log
    end = log.index("\nexit code")
    assert all(table.complete for table in parse_protocols(log[:end]).tables)
    start = log.index("remote memory read by")
    for cut in range(start, end):
        assert not [t for t in parse_protocols(log[:cut]).tables if t.operation == "remote memory read" and t.complete]


def test_a_lost_border_does_not_join_two_tables() -> None:
    lines = capture("ucx-1.22.0_case1_rc_1M_client").splitlines()
    borders = [index for index, line in enumerate(lines) if line.endswith("-+") and "[vmB" in line]
    for lost in borders:
        tables = parse_protocols("\n".join(lines[:lost] + lines[lost + 1 :])).tables
        for table in tables:
            assert not table.complete or {str(row.lanes) for row in table.rows} == {"rc_verbs/rxe0:1"}
            assert len([row for row in table.rows if math.isinf(row.last)]) <= 1 or not table.complete


@pytest.mark.parametrize("kept", [3, 20, 60])
def test_a_row_cut_in_the_middle_of_a_table_makes_it_incomplete(kept: int) -> None:
    lines = gate_run().server.log.splitlines()
    row = max(index for index, line in enumerate(lines) if "copy-out" in line)
    assert read_table("\n".join(lines)).complete
    lines[row] = lines[row][: lines[row].index("|") + kept]
    assert not read_table("\n".join(lines)).complete
