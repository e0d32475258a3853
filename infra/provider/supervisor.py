"""Runs a command and answers for every process that comes out of it, however deep, renamed or orphaned.

python -m infra.provider.supervisor COMMAND...   (Linux; standard library only)

It is the subreaper of the command: whatever is orphaned below it becomes its child and not init's, so "its descendants"
is exact where process groups, names and command lines are not (vLLM's workers rename themselves and outlive a killed
replica, each spinning at 100 % of a core). On SIGTERM, or when the command ends, all descendants are ended.
Standard input is a pipe held by whoever started it: closed without the line `keep`, it means that process died before
it could note this one down, and all is ended.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from infra.provider.processes import HEAD_VARIABLE

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_POLL_SECONDS = 0.5
_GRACE_SECONDS = 10.0  # `ray start --block` ends its own daemons on SIGTERM; measured 2 to 5 s


def descendants(ancestor: int) -> list[int]:
    """Process ids below `ancestor`, nearest first, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                # comm may contain anything, so read behind its closing parenthesis: state, parent, ...
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], list(children.get(ancestor, []))
    while queue:
        pid = queue.pop(0)
        found.append(pid)
        queue += children.get(pid, [])
    return found


def end_descendants(command: int, grace_seconds: float) -> None:
    """SIGTERM to the command, then SIGKILL to every descendant that is left after the grace period."""
    _signal(command, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while time.monotonic() < deadline and _alive_descendants():
        time.sleep(0.1)
    while pids := _alive_descendants():
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.05)


def _alive_descendants() -> list[int]:
    _reap()
    return descendants(os.getpid())


def _reap() -> dict[int, int]:
    """Collect the children that have ended, adopted orphans included: process id -> exit code."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (status := os.waitpid(-1, os.WNOHANG))[0]:
            ended[status[0]] = os.waitstatus_to_exitcode(status[1])
    return ended


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def main(command: list[str]) -> int:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(0))
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    kept = False
    starter_is_there = True
    while not ending:
        if starter_is_there:
            readable, _, _ = select.select([0], [], [], _POLL_SECONDS)
            if readable:
                starter_is_there = False
                kept = os.read(0, 16).strip() == b"keep"
                if not kept:
                    ending.append(1)
        else:
            time.sleep(_POLL_SECONDS)
        if child.pid in (ended := _reap()):
            ending.append(ended[child.pid])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_descendants(child.pid, _GRACE_SECONDS)
    if not starter_is_there and not kept and (directory := os.environ.get(HEAD_VARIABLE)):
        shutil.rmtree(directory, ignore_errors=True)  # nobody else knows of it
    return ending[0]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
