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
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
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


def end_descendants(ancestor: int, grace_seconds: float) -> None:
    """SIGTERM to the direct children, then SIGKILL to everything that is left after the grace period."""
    for pid in descendants(ancestor)[:1]:
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while time.monotonic() < deadline and _alive_descendants(ancestor):
        time.sleep(0.1)
    while pids := _alive_descendants(ancestor):
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.05)


def _alive_descendants(ancestor: int) -> list[int]:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:  # reap adopted orphans
            pass
    return descendants(ancestor)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _starter_is_gone() -> bool:
    """True when the pipe was closed without a word. Blocks until the starter says `keep` or is gone."""
    while True:
        readable, _, _ = select.select([0], [], [], 0.5)
        if readable:
            return os.read(0, 16).strip() != b"keep"


def main(command: list[str]) -> int:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end(*_: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        if _starter_is_gone():
            return 1
        while child.poll() is None:
            time.sleep(0.5)
        return child.returncode
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_descendants(os.getpid(), _GRACE_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
