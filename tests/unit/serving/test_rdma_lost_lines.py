"""Lines of UCX's tables that a log has lost: what is left must never look better than the whole."""

import pytest
from rdma_gate_logs import gate_run, new_table, old_table, with_log

from serving.rdma_gate.gate_run import GateRun, Verdict
from serving.rdma_gate.verdict import judge
from tools.rehearsal.perftest_logs import Rows

READ = "remote memory read by ucp_get*(multi) into rocm/GPU0 from rocm"
RC, TCP = "rc_mlx5/mlx5_0:1/path0", "tcp/eth0"
STAMP = "[1795986420.176238] [node:1395 :0]   "
LAYOUTS = pytest.mark.parametrize("layout", ["new", "old"])


def table(rows: Rows, layout: str, title: str = "perftest inter-node cfg#3", operation: str = READ) -> list[str]:
    lines = (new_table if layout == "new" else old_table)(title, operation, rows)
    return [f"{STAMP}{line}" for line in lines]


def with_lines(run: GateRun, lines: list[str], behind: bool = True) -> Verdict:
    """The verdict on a run both of whose sides wrote these lines as well, before or behind their other tables."""
    for side, log in (("client", run.client.log), ("server", run.server.log)):
        *said, end = log.splitlines()
        own = [line.replace("[node:", f"[{side}:") for line in lines]  # of the same process
        mixed = [*said, *own, end] if behind else [*own, *said, end]
        run = with_log(run, side, "\n".join(mixed))
    return judge(run)


@LAYOUTS
@pytest.mark.parametrize("behind", [True, False])
def test_a_table_over_tcp_that_lost_any_lines_still_fails(layout: str, behind: bool) -> None:
    lines = table([("0..64", "copy-out", TCP), ("65..inf", "zero-copy", TCP)], layout)
    run = gate_run(layout=layout)
    assert with_lines(run, [], behind).outcome == "pass"
    for start in range(len(lines)):
        for end in range(start + 1, len(lines) + 1):
            for left in (lines[:start] + lines[end:], lines[start:end]):
                assert not left or with_lines(run, left, behind).outcome == "fail", left


@LAYOUTS
def test_a_part_without_its_title_is_named(layout: str) -> None:
    lines = table([("0..inf", "zero-copy", TCP)], layout)
    del lines[1]
    assert "a table of UCX lacks lines, from '" in with_lines(gate_run(layout=layout), lines).reason


@LAYOUTS
@pytest.mark.parametrize(
    "rows",
    [
        [("0..64", "copy-out", RC), ("536870913..inf", "zero-copy", RC)],  # without 65..512M over tcp
        [("0..64", "copy-out", RC), ("1G..inf", "zero-copy", RC)],
        [("65..inf", "zero-copy", RC)],
        [("0..64", "copy-out", RC), ("64..inf", "zero-copy", RC)],
    ],
)
def test_rows_that_do_not_follow_each_other_fail(layout: str, rows: Rows) -> None:
    run = gate_run(layout=layout)
    whole = table(
        [("0..64", "copy-out", RC), ("65..512M", "zero-copy", RC), ("536870913..inf", "zero-copy", RC)], layout
    )
    assert with_lines(run, whole).outcome == "pass"
    verdict = with_lines(run, table(rows, layout))
    assert "the table of cfg#3 is cut off, lacks rows" in " ".join(map(str, verdict.findings))
    assert verdict.outcome == "fail"


def test_a_size_without_a_row_is_named() -> None:
    verdict = with_lines(gate_run(), table([("0..64", "copy-out", RC), ("1G..inf", "zero-copy", RC)], "new"))
    assert "cfg#3 has no row for messages of 268,435,456 bytes" in " ".join(map(str, verdict.findings))


@LAYOUTS
@pytest.mark.parametrize("name", ["perf test ", "a b c ", ""])
def test_a_worker_s_name_with_blanks_hides_no_table(layout: str, name: str) -> None:
    title = f"{name}inter-node cfg#3"
    verdict = with_lines(gate_run(layout=layout), table([("0..inf", "zero-copy", TCP)], layout, title))
    assert "tcp/eth0 is no RDMA lane" in verdict.reason
    line = f"{STAMP}ucp_worker.c:1991 UCX  INFO    {name}inter-node cfg#3 rma_am(tcp/eth0)"
    assert "goes over tcp/eth0 (endpoint, rma_am)" in with_lines(gate_run(), [line]).reason


@LAYOUTS
@pytest.mark.parametrize(
    "operation",
    [
        "remote memory write by ucp_put* from rocm/GPU0 to rocm",
        "tagged message by ucp_tag_send* from host memory",
        "active message by ucp_am_send*(fast-completion) with reply flag from host memory",
    ],
)
def test_other_operations_are_no_matter_of_the_gate(layout: str, operation: str) -> None:
    lines = table([("0..inf", "zero-copy", TCP)], layout, operation=operation)
    assert with_lines(gate_run(layout=layout), lines).outcome == "pass"


def test_boxes_that_are_not_ucx_s_are_no_tables() -> None:
    lines = [line.removeprefix(STAMP) for line in table([("a", "b", "c")], "new", "something", "else")]
    assert with_lines(gate_run(), lines).outcome == "pass"
