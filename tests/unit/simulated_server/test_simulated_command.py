"""`python -m tools.simulated_server`, from the shell."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from simulated_client import stream

from benchmarks.target import Target, parse_target
from tools.simulated_server.server import DIED

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "tools.simulated_server", "--speed", "quick"]


@contextmanager
def started(*options: str) -> Iterator[tuple[subprocess.Popen[str], Target]]:
    """The command, once it has printed its target."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([*COMMAND, *options], cwd=ROOT, stdout=pipe, stderr=pipe, text=True)
    try:
        yield process, parse_target(_printed(process), "its output")
    finally:
        process.kill()
        process.communicate()


def _printed(process: subprocess.Popen[str]) -> str:
    text = ""
    assert process.stdout
    for line in process.stdout:
        text += line
        if line == "}\n":
            break
    return text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_a_target_that_says_what_it_is_and_ends_when_told(number: int) -> None:
    with started("--kind", "pd", "--prefill", "2", "--seed", "3") as (process, target):
        assert target.stack == "simulated-pd-2p1d"
        assert target.deployment.dummy_weights
        assert target.versions.keys() == {"simulated-server"}
        assert target.deployment.engine["decode"]["simulated"]["seed"] == 3
        assert stream(target.url).done
        process.send_signal(number)
        out, error = process.communicate(timeout=10)
        assert process.returncode == 0, error
        assert out == ""
        assert "simulated, no model" in error
        with pytest.raises(requests.ConnectionError):
            requests.get(target.url, timeout=2)


def test_an_aggregated_one_on_a_port_of_choice_writes_its_target(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = tmp_path / "target.json"
    options = ["--kind", "aggregated", "--decode", "2", "--port", str(port), "--target-file", str(file)]
    with started(*options) as (_, target):
        assert target.url == f"http://127.0.0.1:{port}"
        assert (target.stack, target.deployment.aggregated, target.kv) == ("simulated-agg-2", 2, None)
        assert json.loads(file.read_text()) == json.loads(target.model_dump_json())


def test_it_dies_when_told_to() -> None:
    with started("--misbehave", "die_at_request=2") as (process, target):
        assert stream(target.url).done
        with pytest.raises(requests.ConnectionError):
            stream(target.url)
        assert process.wait(timeout=10) == DIED


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--misbehave", "kv=1"], "--misbehave kv=1"),
        (["--speed", "fast"], "--speed fast"),
        (["--speed", "base=-1"], "--speed base=-1"),
        (["--target-file", "/nowhere/target.json"], "/nowhere/target.json"),
    ],
)
def test_what_cannot_be_is_one_line(options: list[str], named: str) -> None:
    done = subprocess.run([*COMMAND, *options], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert named in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run([*COMMAND, "--port", port], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert done.stderr == f"error: cannot serve on port {port}: Address already in use; choose another with --port\n"
