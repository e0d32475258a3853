"""Runs a program in a process group of its own and leaves nothing of it behind, whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

from benchmarks.guard import RELIEVED

GUARD = Path(__file__).with_name("guard.py")
# AIPerf needs a moment to end its workers after SIGINT; it is killed when it takes longer.
POLITE_S = 5.0
TICK_S = 0.5
# Ctrl-C, a polite kill, and a terminal that was closed.
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_in_group(
    argv: list[str],
    environment: dict[str, str],
    log: Path,
    tick: Callable[[float], None],
    watch: Callable[[int], None] | None = None,
    scratch: Path | None = None,
) -> int:
    """Run a program to its end with output to `log`, calling `tick` with the seconds since its start twice a second.

    `watch` is called as often, with the program's process id. Returns its exit code. Whatever ends this call (the end
    of the program, Ctrl-C, a signal turned into an exception, an error in `tick`), the whole process group is gone when
    it returns. When this process itself is killed, its guard ends the group, and deletes the folder `scratch`.
    """
    start = time.monotonic()
    with log.open("ab") as sink:
        child = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    guard: subprocess.Popen[bytes] | None = None
    try:
        guard = _guard(child.pid, scratch)
        while child.poll() is None:
            tick(time.monotonic() - start)
            if watch is not None:
                watch(child.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(TICK_S)
        return child.returncode
    finally:
        # An impatient second Ctrl-C waits until the group is gone.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
        try:
            _end_group(child)
            if guard is not None:
                guard.communicate(RELIEVED)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _guard(group: int, scratch: Path | None) -> subprocess.Popen[bytes]:
    """Start the guard of a group. Its session of its own keeps Ctrl-C and a closed terminal away from it."""
    command = [sys.executable, "-I", "-S", str(GUARD), str(group), *([str(scratch)] if scratch else [])]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End the group politely, then by force. The leader's id names the group as long as one member lives."""
    for number, patience in ((signal.SIGINT, POLITE_S), (signal.SIGTERM, POLITE_S), (signal.SIGKILL, POLITE_S)):
        if not _signal_group(child.pid, number):
            break
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and _group_lives(child):
            time.sleep(0.05)
        if not _group_lives(child):
            break
    child.wait()


def _group_lives(child: subprocess.Popen[bytes]) -> bool:
    child.poll()  # reap the leader, else its zombie keeps the group
    return _signal_group(child.pid, 0)


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def endings_as_interrupt() -> Generator[None]:
    """Within this block SIGTERM and SIGHUP end the work the way Ctrl-C does, so that clean-up runs.

    A signal that this process was started to ignore stays ignored: `nohup` means to go on after logout.
    """

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    heeded = [number for number in ENDINGS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
