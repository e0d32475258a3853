"""Whatever comes out of a supervised command ends with it. Real processes, no Ray."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from infra.provider.processes import HEAD_VARIABLE, Process, end_leftovers
from tests.shell import ROOT

# A command whose grandchild leaves its process group and session, is orphaned, ignores SIGTERM and says its id.
STUBBORN = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
time.sleep(600)
"""


@pytest.fixture
def supervised() -> Iterator[tuple["subprocess.Popen[str]", Process]]:
    """(supervisor, the stubborn grandchild)."""
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "infra.provider.supervisor", sys.executable, "-c", STUBBORN],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, HEAD_VARIABLE: "/nowhere/of-this-test"},
        start_new_session=True,
    )
    assert supervisor.stdout is not None
    grandchild = Process.of(int(supervisor.stdout.readline()))
    yield supervisor, grandchild
    supervisor.kill()
    supervisor.wait()
    if grandchild.alive():
        os.kill(grandchild.pid, signal.SIGKILL)


def becomes(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_sigterm_ends_an_orphan_that_ignores_it(supervised: tuple["subprocess.Popen[str]", Process]) -> None:
    supervisor, grandchild = supervised
    assert supervisor.stdin is not None
    supervisor.stdin.write("keep\n")
    supervisor.stdin.flush()
    assert Process.of(supervisor.pid).end(seconds=30)
    assert not grandchild.alive()


def test_a_starter_that_dies_without_a_word_takes_all_with_it(
    supervised: tuple["subprocess.Popen[str]", Process],
) -> None:
    supervisor, grandchild = supervised
    assert supervisor.stdin is not None
    supervisor.stdin.close()
    assert becomes(lambda: supervisor.poll() is not None)
    assert not grandchild.alive()


def test_a_command_that_ends_at_once_is_reported_while_the_starter_still_waits() -> None:
    command = [sys.executable, "-m", "infra.provider.supervisor", sys.executable, "-c", "raise SystemExit(7)"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as supervisor:
        assert becomes(lambda: supervisor.poll() is not None)
        assert supervisor.returncode == 7


def test_a_starter_that_said_keep_may_go(supervised: tuple["subprocess.Popen[str]", Process]) -> None:
    supervisor, grandchild = supervised
    assert supervisor.stdin is not None
    supervisor.stdin.write("keep\n")
    supervisor.stdin.close()
    time.sleep(2)
    assert supervisor.poll() is None
    assert grandchild.alive()


def test_leftovers_of_a_killed_supervisor_are_found_and_nothing_else(
    supervised: tuple["subprocess.Popen[str]", Process],
) -> None:
    supervisor, grandchild = supervised
    supervisor.kill()
    supervisor.wait()
    assert grandchild.alive()
    end_leftovers("/nowhere/of-this")  # another head's directory, of which this one's is a longer name
    assert grandchild.alive()
    end_leftovers("/nowhere/of-this-test")
    assert becomes(lambda: not grandchild.alive())


def test_a_process_id_that_was_used_again_is_another_process() -> None:
    mine = Process.of(os.getpid())
    assert mine.alive()
    assert not Process(mine.pid, mine.started + 1).alive()
    assert Process(mine.pid, mine.started + 1).end(seconds=1), "somebody else's process must not be signalled"
