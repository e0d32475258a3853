"""The driver in the gate's pods, with a ucx_perftest that is a script: what it runs, and how it frames the output."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serving.rdma_gate import run as driver
from serving.rdma_gate.framing import FramedRun, framed_runs, mark, quoted
from serving.stack_files import ROOT

PERFTEST = """\
#!/bin/bash
# Says what it was asked; refuses as often as the file `refusals` says, hangs for the device in `hangs`.
cd "$(dirname "$0")"
if [ "$UCX_NET_DEVICES" = "$(cat hangs 2>/dev/null)" ]; then printf 'begun'; sleep 60; fi
left=$(cat refusals 2>/dev/null || echo 0)
if [ "$left" -gt 0 ]; then
  echo $((left - 1)) > refusals
  echo "UCX  ERROR connect() failed: Connection refused"
  exit 255
fi
echo "asked $*"
echo "$UCX_NET_DEVICES $UCX_LOG_LEVEL $UCX_PROTO_INFO rails=$UCX_MAX_RMA_RAILS gpu=$HIP_VISIBLE_DEVICES"
exit "$(cat code 2>/dev/null || echo 0)"
"""
TWO = ["mlx5_0:1", "mlx5_1:1"]


@pytest.fixture
def perftest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the script, first on PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "ucx_perftest").write_text(PERFTEST)
    (place / "ucx_perftest").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.setattr(driver, "_RETRY_SECONDS", 0.01)
    return place


def counters(sys_folder: Path, words: int = 0) -> Path:
    for device in TWO:
        file = sys_folder / "class/infiniband" / device.split(":")[0] / "ports/1/counters/port_rcv_data"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{words}\n")
    return sys_folder


@pytest.mark.usefixtures("perftest")
def test_the_client_runs_each_nic_and_then_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = counters(tmp_path / "sys")
    driver.read(driver.runs_of(TWO, "rocm", folder), "10.0.0.7", "rocm", folder)
    runs = framed_runs(capsys.readouterr().out)
    assert list(runs) == [*TWO, "all"]
    asked, environment, end = runs["mlx5_1:1"].log.splitlines()
    assert asked == "asked 10.0.0.7 -t ucp_get -m rocm -s 268435456 -n 100 -w 5 -p 13338"
    assert environment == "mlx5_1:1 info y rails= gpu="
    assert end == "exit code 0"
    assert "mlx5_0:1,mlx5_1:1 info y rails=2 gpu=" in runs["all"].log
    assert "-p 13339" in runs["all"].log
    assert {run.exit_code for run in runs.values()} == {0}
    assert runs["all"].rdma_bytes == dict.fromkeys(TWO, 0)


@pytest.mark.usefixtures("perftest")
def test_the_server_is_asked_nothing_but_its_port(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    driver.serve(driver.runs_of(TWO, "rocm", tmp_path))
    runs = framed_runs(capsys.readouterr().out)
    assert [run.log.splitlines()[0] for run in runs.values()] == [f"asked -p {13337 + number}" for number in range(3)]
    assert [run.rdma_bytes for run in runs.values()] == [None] * 3


def test_a_server_that_is_not_there_yet_is_tried_again(
    perftest: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (perftest / "refusals").write_text("3")
    driver.read(driver.runs_of(TWO[:1], "host", tmp_path), "peer", "host", tmp_path)
    (run,) = framed_runs(capsys.readouterr().out).values()
    assert "refused" not in run.log
    assert run.exit_code == 0
    assert run.rdma_bytes is None, "there is no counter"


def test_a_server_that_never_comes_is_given_up_for_all_runs(
    perftest: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_REFUSED_SECONDS", 0.1)
    (perftest / "refusals").write_text("1000000")
    driver.read(driver.runs_of(TWO, "host"), "peer", "host")
    runs = framed_runs(capsys.readouterr().out)
    assert list(runs) == TWO[:1]
    assert runs[TWO[0]].exit_code == 255
    assert "Connection refused" in runs[TWO[0]].log


def test_another_failure_is_not_repeated(perftest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (perftest / "code").write_text("3")
    driver.read(driver.runs_of(TWO, "host"), "peer", "host")
    assert [run.exit_code for run in framed_runs(capsys.readouterr().out).values()] == [3, 3, 3]


def test_a_run_has_its_own_limit_and_the_next_goes_on(
    perftest: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "RUN_SECONDS", 0.5)
    (perftest / "hangs").write_text(TWO[0])
    driver.read(driver.runs_of(TWO, "host"), "peer", "host")
    runs = framed_runs(capsys.readouterr().out)
    assert runs[TWO[0]].exit_code is None
    assert runs[TWO[0]].log == "begun\nexit code -9", "what it had said is not lost, and its last line is ended"
    assert runs[TWO[1]].exit_code == 0


def test_without_ucx_perftest_the_log_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    driver.serve(driver.runs_of(TWO[:1], "host"))
    (run,) = framed_runs(capsys.readouterr().out).values()
    assert run.exit_code == 127
    assert "ucx_perftest cannot be started" in run.log


def test_bytes_are_counted_between_before_and_after(tmp_path: Path) -> None:
    folder = counters(tmp_path, 25)
    assert driver.received(TWO, folder) == dict.fromkeys(TWO, 100)
    assert driver.received(["mlx5_9:1"], folder) is None


def test_a_signal_ends_it_with_what_it_started(perftest: Path) -> None:
    (perftest / "hangs").write_text(TWO[0])
    command = [sys.executable, "-m", "serving.rdma_gate.run", "server", "--devices", ",".join(TWO), "--memory", "host"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert "begin" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 143
        assert framed_runs(process.stdout.read()) == {}, "its child would keep the pipe open"


def test_it_imports_the_standard_library_and_itself_only() -> None:
    code = "import sys; import serving.rdma_gate.run; print({m.split('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "serving" in done.stdout, "-S: nothing that was installed is on the path"


def test_what_a_program_says_is_never_taken_for_the_frame() -> None:
    said = mark("end", run="x", exit_code=0) + "\nmore"
    log = "\n".join([mark("begin", run="x"), quoted(said) + "exit code 1", mark("end", run="x", exit_code=1)])
    assert framed_runs(log)["x"].exit_code == 1


def test_a_log_that_is_cut_off() -> None:
    log = "\n".join([mark("begin", run="x"), "hello", mark("end", run="x", exit_code=0)])
    assert framed_runs(log[:-3])["x"] == framed_runs(mark("begin", run="x") + "\nhello")["x"]
    assert framed_runs(log[:-3])["x"].exit_code is None
    assert framed_runs("") == {}


@pytest.mark.parametrize(
    "damaged",
    [
        "@@rdma-gate {}",
        "@@rdma-gate 5",
        "@@rdma-gate null",
        '@@rdma-gate ["end"]',
        '@@rdma-gate {"event": "begin"}',
        '@@rdma-gate {"event": "begin", "run": 7}',
        '@@rdma-gate {"event": "end"}',
        '@@rdma-gate {"event": "end", "run": "y"}',
        "@@rdma-gate not json",
    ],
)
def test_a_line_of_the_frame_that_is_damaged_says_nothing(damaged: str) -> None:
    lines = [mark("begin", run="x"), "said", damaged, mark("end", run="x", exit_code=0, rdma_bytes={"x": 1})]
    assert framed_runs("\n".join([damaged, *lines, damaged])) == {"x": FramedRun("said", 0, {"x": 1})}


@pytest.mark.parametrize(
    ("end", "run"),
    [
        ({}, FramedRun("said")),
        ({"exit_code": "0"}, FramedRun("said")),
        ({"exit_code": True}, FramedRun("said")),
        ({"exit_code": 0, "rdma_bytes": 5}, FramedRun("said", 0)),
        ({"exit_code": 0, "rdma_bytes": {"x": "many"}}, FramedRun("said", 0)),
        ({"exit_code": 0, "rdma_bytes": {"x": 1.5}}, FramedRun("said", 0)),
    ],
)
def test_an_end_without_its_values_is_no_success(end: dict[str, Any], run: FramedRun) -> None:
    assert framed_runs("\n".join([mark("begin", run="x"), "said", mark("end", run="x", **end)])) == {"x": run}
