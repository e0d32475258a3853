"""A service or a network that goes in the middle of a rate: what is finished stays, and a rerun goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from impatient import benchmarks
from stand_in_data import scenario_data

from benchmarks.run_directory import RunDirectory, open_run
from tools.rehearsal.namespace import Namespace
from tools.toolchain.errors import ToolchainError

ROOT = Path(__file__).parents[3]
# Ten seconds are enough to be cut off in; requests give up soon after.
BODY = scenario_data(rates=[15, 16], osl=8, min_requests=60, max_requests=60, window_s=2, request_timeout_s=6)


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
    command = [*benchmarks(0.3, 3), "run", str(folder / "target.json"), "--aiperf", aiperf]
    command += ["--results", str(folder / "results"), "--scenarios", str(folder / "scenarios.yaml"), *options]
    return subprocess.Popen(
        network.enter([*command, "--scenario", "quick"]),
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cut_off(process: subprocess.Popen[str], folder: Path, before: int, cut: Callable[[], object]) -> str:
    """Cut a run off once requests at 16 req/s have been answered; what it then says, which is one line.

    before: how often the run was cut off there already: what those answered is put aside first.
    """
    rates = "results/*/*/rates"
    deadline = time.monotonic() + 240
    while len([*folder.glob(f"{rates}/16.interrupted-*")]) < before or not any(
        file.stat().st_size for file in folder.glob(f"{rates}/16/aiperf/profile_export.jsonl")
    ):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "16 req/s never began"
        time.sleep(0.05)
    cut()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, out
    assert len(err.splitlines()) == 1, err
    return err


def kept(folder: Path) -> dict[float, bytes]:
    """The results of the finished rates, byte for byte."""
    run = only_run(folder)
    return {result.rate: (run.rate_folder(result.rate) / "summary.json").read_bytes() for result in run.results()}


def only_run(folder: Path) -> RunDirectory:
    (path,) = folder.glob("results/*/*")
    return open_run(path)


def test_a_service_that_is_killed_and_a_network_that_goes(network: Namespace, aiperf: str, tmp_path: Path) -> None:
    """One run, cut off in its second rate by the one and then by the other, and gone on with each time."""
    body = dict(BODY)
    (tmp_path / "scenarios.yaml").write_text(yaml.safe_dump({body.pop("name"): body}), encoding="utf-8")

    def link(state: str) -> None:
        subprocess.run(network.enter(["ip", "link", "set", "lo", state]), check=True)

    with served(network, tmp_path) as server:
        said = cut_off(benchmark(network, tmp_path, aiperf), tmp_path, 0, server.kill)
    assert "(1 of 2 rates kept; the same command with --resume goes on)" in said
    first = kept(tmp_path)
    assert first.keys() == {15}

    with served(network, tmp_path):
        said = cut_off(benchmark(network, tmp_path, aiperf, "--resume"), tmp_path, 1, lambda: link("down"))
        assert "(1 of 2 rates kept; the same command with --resume goes on)" in said
        assert kept(tmp_path) == first
        assert not only_run(tmp_path).complete
        link("up")
        out, err = benchmark(network, tmp_path, aiperf, "--resume").communicate(timeout=300)

    run = only_run(tmp_path)
    assert run.complete, out + err
    assert [result.rate for result in run.results()] == [15, 16]
    assert first.items() <= kept(tmp_path).items()
    for result in run.results():
        assert result.summary.good == result.summary.measured
        assert result.kv.verdict == "proven", result.kv.reasons
    # The points that broke are kept beside the one that replaced them, and marked by their names.
    for number in (1, 2):
        broken = run.path / "rates" / f"16.interrupted-{number}"
        assert (broken / "aiperf" / "profile_export.jsonl").stat().st_size > 0
        assert not (broken / "summary.json").exists()
