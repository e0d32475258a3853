"""What one side's log says of itself: final figures, versions, settings, and what went wrong."""

import pytest
from rdma_gate_logs import capture, gate_run, with_log

from serving.rdma_gate.ucx_perftest import Figures, ProblemKind, parse_perftest
from serving.rdma_gate.verdict import judge


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("ucx-1.22.0_tcp_proto-info-y", Figures(10, 64.91, 986005.712)),
        ("ucx-1.19.0_tcp_proto-info-y", Figures(5, 93.59, 10684.824)),
        ("ucx-1.22.0_tcp_csv", Figures(5, 15.78, 63378.572)),
        ("ucx-1.22.0_tcp_loopback_client", Figures(10, 256.18, 3903.484)),  # CSV among other lines
        ("ucx-1.22.0_case1_rc_1M_client", Figures(20, 9.38, 106652.105)),
        ("ucx-1.22.0_shm_client", Figures(10, 3130.08, 319.481)),
    ],
)
def test_final_figures_are_those_of_the_whole_run(name: str, figures: Figures) -> None:
    assert parse_perftest(capture(name)).finals == (figures,)


@pytest.mark.parametrize(
    "name",
    [
        "ucx-1.22.0_bad-net-device",
        "ucx-1.22.0_rc-missing",
        "ucx-1.22.0_case0_rc_64K_default_fence_client",
        "ucx-1.22.0_case1_rc_1M_server",
    ],
)
def test_a_failed_run_and_a_server_have_none(name: str) -> None:
    assert parse_perftest(capture(name)).finals == ()


def test_interim_figures_and_headers_are_no_final_ones() -> None:
    """Without -f and -v there are lines of every second, and in CSV they differ by their beginning only."""
    header = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr"
    row = "5,1.0,1.0,1.0,2.00,3.00,1,1"
    assert parse_perftest(f"{header}\n[thread 0]   {row}\n").finals == ()
    assert parse_perftest(f"{row}\n").finals == ()
    assert parse_perftest(f"{header}\n   {row}\n").finals == (Figures(5, 3.0, 1.0),)
    assert parse_perftest(f"{header}\n   5,1.0,1.0,1.0,2.00,3.00,1\n").finals == ()


def test_the_row_with_bars_of_later_versions_is_read() -> None:
    row = "| Final:       |           20 | 109091.000 | 109779.716 | 106652.105 |   9.11 |   9.38 |     9 |     9 |"
    assert parse_perftest(row).finals == (Figures(20, 9.38, 106652.105),)


@pytest.mark.parametrize(
    "row",
    [
        "Final: 20 109091.000 109779.716 106652.105 9.11 9.38 9",
        "Final: 20 109091.000 109779.716 106652.105 9.11 9.38 9 9 9",
        "Final: 20 109091.000 109779.716 106652.105 9.11 nan 9 9",
        "Final: 20 109091.000 109779.716 106652.105 9.11 inf 9 9",
        "Final: 20 109091.000 109779.716 106652.105 9.11 -9.38 9 9",
    ],
)
def test_a_row_of_another_form_is_no_figure(row: str) -> None:
    assert parse_perftest(row).finals == ()


@pytest.mark.parametrize(
    ("name", "first", "subject"),
    [
        ("ucx-1.22.0_bad-net-device", "device-missing", ("mlx5_0:1",)),
        ("ucx-1.22.0_rc-missing", "transport-missing", ("rc",)),
        ("ucx-1.22.0_tcp_emulation-off", "no-zero-copy", ()),
        ("ucx-1.22.0_case0_rc_64K_default_fence_client", "transfer", ()),
    ],
)
def test_problems_have_their_kind_and_words(name: str, first: ProblemKind, subject: tuple[str, ...]) -> None:
    problems = parse_perftest(capture(name)).problems
    assert (problems[0].kind, problems[0].subject) == (first, subject)
    assert problems[0].text in capture(name)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("rocm_copy_md.c:430  UCX  ERROR ROCm dmabuf support requested but not found", "dmabuf-missing"),
        ("ib_md.c:309  UCX  ERROR ibv_reg_mr(address=0x7f, length=16) failed: Invalid argument", "registration"),
        ("ib_mlx5_log.c:177  UCX  ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15)", "path-broken"),
        ("ucp_context.c:1492 UCX  WARN  network devices 'a:1','b:1' are not available, please use", "device-missing"),
        ("x.c:1 UCX  ERROR something that nobody has seen", "error"),
        ("x.c:1 UCX  FATAL something that nobody has seen", "error"),
    ],
)
def test_lines_that_tell_of_a_failure(line: str, kind: ProblemKind) -> None:
    (problem,) = parse_perftest(f"[1795986420.176238] [node:1395 :0]   {line}").problems
    assert problem.kind == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Error on QP 0x45 wqe[17]: Remote access (synd 0x13 vend 0x88) opcode RDMA_READ", "transfer"),
        ("Error on QP 0x45 wqe[17]: Remote QP (synd 0x14 vend 0x89) opcode RDMA_READ", "transfer"),
        ("Remote access on mlx5_0:1/RoCE (synd 0x13 vend 0x88 hw_synd 0/0)", "transfer"),
        ("Local protection on mlx5_0:1/RoCE (synd 0x4 vend 0x56 hw_synd 0/0)", "transfer"),
        ("Memory window bind on mlx5_0:1/RoCE (synd 0x6 vend 0x1 hw_synd 0/0)", "transfer"),
        ("send completion with error: remote access error [vendor_err 136]", "transfer"),
        ("send completion with error: local protection error", "transfer"),
        ("send completion with error: transport retry counter exceeded", "path-broken"),
        ("Receive-no-ready retry count exceeded on mlx5_0:1/RoCE (synd 0x16 vend 0x97)", "path-broken"),
        ("ibv_modify_qp(RTR) failed: Invalid argument", "path-broken"),
        ("modify QP 0x45 to RTR failed: Connection timed out", "path-broken"),
    ],
)
def test_a_transfer_that_failed_is_a_problem_at_level_diag_already(text: str, kind: ProblemKind) -> None:
    """The run goes on, and ends with figures and exit code 0."""
    line = f"[1795986420.176238] [node:1395 :0]   ib_mlx5_log.c:177  UCX  DIAG  {text}\n"
    (problem,) = parse_perftest(line).problems
    assert (problem.kind, problem.text) == (kind, text)
    run = gate_run()
    verdict = judge(with_log(run, "client", run.client.log.replace("Final:", f"{line}Final:")))
    assert verdict.reason == f"client: {text}"


def test_what_is_only_told_is_no_problem() -> None:
    line = "[1795986420.1] [node:1:0]  select.c:1 UCX  INFO  destination is unreachable by tcp"
    assert parse_perftest(line).problems == ()
    assert parse_perftest(line.replace("INFO", "DIAG")).problems != ()


@pytest.mark.parametrize("line", ["[node:1:0] Caught signal 11 (Segmentation fault: address not mapped)", "Killed"])
def test_a_crash_is_a_problem(line: str) -> None:
    assert [problem.kind for problem in parse_perftest(line).problems] == ["crashed"]


def test_whole_runs_have_no_problems() -> None:
    for name in ("case1_rc_1M_client", "case1_rc_1M_server", "case3_tcp_1M_client", "shm_client", "shm_server"):
        assert parse_perftest(capture(f"ucx-1.22.0_{name}")).problems == ()


def test_version_environment_header_and_exit_code() -> None:
    server = parse_perftest(capture("ucx-1.22.0_case1_rc_1M_server"))
    assert server.version == "1.22.0"
    assert server.environment["UCX_TLS"] == "rc,sm,self"
    assert server.header == {
        "Test": "get latency / bandwidth / message rate",
        "Send memory": "host",
        "Recv memory": "host",
        "Message size": "1048576",
    }
    assert server.exit_code == 0
    assert parse_perftest(capture("ucx-1.22.0_case0_rc_64K_default_fence_client")).exit_code == 1
    assert parse_perftest(capture("ucx-1.19.0_tcp_proto-info-y")).exit_code is None
    assert parse_perftest(capture("ucx-1.19.0_tcp_proto-info-y")).version == "1.19.0"


def test_an_exit_code_in_the_middle_is_not_the_end() -> None:
    assert parse_perftest("exit code 0\nmore\n").exit_code is None
