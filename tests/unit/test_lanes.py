"""`python3 -m tools.lanes`: what runs beside each other ends together."""

import signal
import subprocess
import sys
import time

from tests.shell import ROOT


def lanes(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tools.lanes", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_one_failure_fails_all_and_hides_nothing() -> None:
    process = lanes("good=sh -c 'sleep 0.5; echo fine'", "bad=sh -c 'echo broken; exit 3'")
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "good | fine" in text
    assert "bad | broken" in text
    assert "bad | FAILED with exit code 3" in text
    assert "error: bad failed" in text


def test_all_good() -> None:
    process = lanes("one=echo first", "two=echo second")
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 0, text


def test_ctrl_c_reaches_every_lane() -> None:
    trap = "trap 'echo cleaned up; exit 1' INT; echo ready; while true; do sleep 0.1; done"
    process = lanes(f'one=bash -c "{trap}"', f'two=bash -c "{trap}"')
    assert process.stdout is not None
    seen = ""
    while seen.count("ready") < 2:
        seen += process.stdout.readline()
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert rest.count("cleaned up") == 2
    assert time.monotonic() - start < 20
