"""A service or a network that goes in the middle of a rate: what is finished stays, and a rerun goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from stand_in_data import scenario_data

from benchmarks.run_directory import RunDirectory, open_run
from tools.rehearsal.namespace import Namespace
from tools.toolchain.errors import ToolchainError

ROOT = Path(__file__).parents[3]
# Ten seconds are enough to be cut off in; requests give up soon after.
BODY = scenario_data(rates=[15, 16], osl=8, min_requests=60, max_requests=60, window_s=2, request_timeout_s=6)
SECOND_RATE = "results/*/*/rates/16/aiperf/profile_export.jsonl"

# The command line, which waits three seconds and not two minutes for counters that do not come any more.
IMPATIENT = """
from functools import partial
from benchmarks import __main__, run
from benchmarks.metrics import Settling
run.execute = partial(run.execute, settling=Settling(quiet_s=0.3, limit_s=3))
__main__.main()
"""


@pytest.fixture
def network() -> Iterator[Namespace]:
    try:
        namespace = Namespace()
    except ToolchainError as error:
        pytest.fail(str(error), pytrace=False)
    yield namespace
    namespace.close()


@contextmanager
def served(network: Namespace, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A simulated server in that network, whose target lies in `folder`."""
    command = [sys.executable, "-m", "tools.simulated_server", "--port", "8000"]
    process = subprocess.Popen(
        network.enter(command), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    lines: list[str] = []
    for line in process.stdout or ():
        lines.append(line)
        if line == "}\n":
            break
    (folder / "target.json").write_text("".join(lines), encoding="utf-8")
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def benchmark(network: Namespace, folder: Path, aiperf: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", IMPATIENT, "run", str(folder / "target.json"), "--aiperf", aiperf]
    command += ["--results", str(folder / "results"), "--scenarios", str(folder / "scenarios.yaml"), *options]
    return subprocess.Popen(
        network.enter([*command, "--scenario", "quick"]),
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cut_off(
    network: Namespace, folder: Path, aiperf: str, cut: Callable[[], object]
) -> subprocess.CompletedProcess[str]:
    """Begin a run, and cut it off once requests of its second rate have been answered."""
    body = dict(BODY)
    (folder / "scenarios.yaml").write_text(yaml.safe_dump({body.pop("name"): body}), encoding="utf-8")
    process = benchmark(network, folder, aiperf)
    deadline = time.monotonic() + 240
    while not any(file.stat().st_size for file in folder.glob(SECOND_RATE)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the second rate never began"
        time.sleep(0.05)
    cut()
    out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def only_run(folder: Path) -> RunDirectory:
    (path,) = folder.glob("results/*/*")
    return open_run(path)


def check_what_is_left(folder: Path, ended: subprocess.CompletedProcess[str]) -> bytes:
    """It failed with one line that says how to go on; the first rate is kept, byte for byte until a rerun ends."""
    assert ended.returncode == 1, ended.stdout
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert "(1 of 2 rates kept; --resume goes on)" in ended.stderr
    run = only_run(folder)
    assert [result.rate for result in run.results()] == [15]
    assert not run.complete
    return (run.rate_folder(15) / "summary.json").read_bytes()


def check_rerun(network: Namespace, folder: Path, aiperf: str, kept: bytes) -> None:
    again = benchmark(network, folder, aiperf, "--resume")
    out, err = again.communicate(timeout=300)
    run = only_run(folder)
    assert run.complete, out + err
    assert (run.rate_folder(15) / "summary.json").read_bytes() == kept
    assert [result.rate for result in run.results()] == [15, 16]
    assert run.results()[1].summary.good == run.results()[1].summary.measured
    # The point that broke is kept beside the one that replaced it, and marked by its name.
    broken = run.path / "rates" / "16.interrupted-1"
    assert (broken / "aiperf" / "profile_export.jsonl").stat().st_size > 0
    assert not (broken / "summary.json").exists()
    assert json.loads((run.path / "answers.json").read_text(encoding="utf-8"))


def test_a_service_that_is_killed(network: Namespace, aiperf: str, tmp_path: Path) -> None:
    with served(network, tmp_path) as server:
        ended = cut_off(network, tmp_path, aiperf, server.kill)
    kept = check_what_is_left(tmp_path, ended)
    with served(network, tmp_path):
        check_rerun(network, tmp_path, aiperf, kept)


def test_a_network_that_goes(network: Namespace, aiperf: str, tmp_path: Path) -> None:
    def link(state: str) -> None:
        subprocess.run(network.enter(["ip", "link", "set", "lo", state]), check=True)

    with served(network, tmp_path):
        ended = cut_off(network, tmp_path, aiperf, lambda: link("down"))
        kept = check_what_is_left(tmp_path, ended)
        link("up")
        check_rerun(network, tmp_path, aiperf, kept)
