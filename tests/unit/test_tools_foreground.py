"""A command in the foreground: it hears of an interruption once, cleans up, and only then does its caller end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLER = """
import os, sys
from pathlib import Path
from tools import foreground
foreground.interruptible()
try:
    code = foreground.run("item", sys.argv[1:], cwd=Path.cwd(), env=os.environ, text="typed")
    print("ended with", code)
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(130)
"""
# Says each time that it is interrupted, and takes its time to clean up.
COMMAND = """
import signal, sys, time
heard, said = [], 0
signal.signal(signal.SIGINT, lambda *_: heard.append(time.monotonic()))
print("read", sys.stdin.read(), flush=True)
while not heard or time.monotonic() < heard[-1] + 0.5:
    if len(heard) > said:
        said = len(heard)
        print("heard", said, flush=True)
    time.sleep(0.02)
print("clean", flush=True)
"""
WAITING = f"item: interrupted: waiting for {Path(sys.executable).name} to clean up"


def interrupted(*signals: int, before: Sequence[str] = ()) -> tuple[int, list[str]]:
    """Exit code and output of a caller that gets these signals while its command runs."""
    command = [*before, sys.executable, "-c", CALLER, sys.executable, "-c", COMMAND]
    # Where it is set, a line and its end are written one after the other, and two programs write here.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as caller:
        assert caller.stdout is not None
        lines = [caller.stdout.readline()]
        for number in signals:
            os.killpg(caller.pid, number)  # as a terminal does
            if signals == (signal.SIGINT, signal.SIGINT):  # the kernel makes one of two that nobody has taken yet
                lines += [next(line for line in caller.stdout if line.startswith("heard"))]
            elif before:
                time.sleep(0.2)  # to see what the first one alone does
        lines += caller.stdout.readlines()
    return caller.returncode, [line.strip() for line in lines]


@pytest.mark.parametrize(
    "signals",
    [
        [signal.SIGINT],
        [signal.SIGTERM],
        [signal.SIGHUP, signal.SIGTERM],  # as a closed terminal and its shell may do
    ],
)
def test_command_hears_of_it_once_and_the_caller_is_interrupted_after_its_end(signals: Sequence[int]) -> None:
    code, lines = interrupted(*signals)
    assert lines[0] == "read typed"
    assert sorted(lines[1:3]) == ["heard 1", WAITING]
    assert lines[3:] == ["clean", "interrupted"]
    assert code == 130


def test_command_hears_of_an_impatient_user_twice() -> None:
    code, lines = interrupted(signal.SIGINT, signal.SIGINT)
    assert [line for line in lines if line.startswith("heard")] == ["heard 1", "heard 2"]
    assert lines[-1] == "interrupted"
    assert code == 130


def test_nohup_stays_in_force() -> None:
    code, lines = interrupted(signal.SIGHUP, signal.SIGINT, before=["nohup"])
    assert [line for line in lines if line.startswith("heard")] == ["heard 1"]
    assert code == 130


def test_command_that_ends_by_itself_gives_its_exit_code() -> None:
    command = [sys.executable, "-c", CALLER, "sh", "-c", "exit 7"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "ended with 7\n")
