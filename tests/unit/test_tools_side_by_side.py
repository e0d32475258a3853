"""`python -m tools.side_by_side`: two make targets at once, from a shell."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shell import ROOT

Start = Callable[..., "subprocess.Popen[str]"]
# Each of `one` and `two` waits until the other has begun.
MAKEFILE = """
SHELL := /bin/bash
one:
\t@touch one; until [ -e two ]; do sleep 0.1; done; echo here I am; echo and here >&2
two:
\t@touch two; until [ -e one ]; do sleep 0.1; done; echo me too
fails:
\t@echo no; exit 7
waits:
\t@trap 'echo cleaned up; exit 1' INT; echo ready; for i in {1..300}; do sleep 0.1; done
"""


@pytest.fixture
def start(tmp_path: Path) -> Start:
    (tmp_path / "Makefile").write_text(MAKEFILE)

    def start(*targets: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tools.side_by_side", *targets]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=tmp_path, env=env, stdout=pipe, text=True, start_new_session=True)

    return start


def test_both_run_at_once_and_each_line_says_whose_it_is(start: Start) -> None:
    process = start("one", "two")
    lines, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert sorted(lines.splitlines()) == ["one  and here", "one  here I am", "two  me too"]


def test_one_that_fails_fails_the_whole_and_the_other_still_ends(start: Start) -> None:
    process = start("fails", "two", "one")
    lines, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "fails  no" in lines
    assert "two    me too" in lines


def test_ctrl_c_ends_both_and_waits_until_they_have_cleaned_up(start: Start) -> None:
    process = start("waits", "one")  # the second of them waits for ever
    assert process.stdout is not None
    assert process.stdout.readline() == "waits  ready\n"
    os.killpg(process.pid, signal.SIGINT)
    lines = process.stdout.read()
    process.wait(60)
    assert process.returncode != 0
    assert "waits  cleaned up" in lines
    assert "Traceback" not in lines
