"""`make test` compiles what its last tests need while its first tests run.

The background run is an ordinary `ensure`. A later `ensure` in the foreground waits for its lock, or makes the thing
itself where the background run has failed, and so shows the error again.
"""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from . import items
from .cache import cache_root
from .console import home_relative, say
from .errors import ToolchainError
from .versions import ROOT

ITEM = "background"
# Compilers take what the tests in the foreground leave: those have time limits. 15 of 19: chosen because Linux then
# gives a compiler a thirtieth of a test's share of a core (weights 36 and 1024 in kernel/sched/core.c).
NICENESS = 15


def start(pid: int, names: Sequence[str]) -> None:
    """Make what is missing of `names` without waiting for it, for as long as process `pid` lives."""
    missing = [name for name in names if not _is_there(name)]
    if not missing:
        return
    log = _log(pid)
    say(ITEM, f"making {', '.join(missing)} at low priority; its progress goes to {home_relative(log)}")
    command = [sys.executable, "-m", __package__ or "", "ensure", "--while", str(pid), *missing]
    with log.open("ab") as output:
        # Errors go where this run's errors go. A session of its own: it ends with `pid`, not by the terminal's Ctrl-C.
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, start_new_session=True)


def only_while(pid: int) -> None:
    """Give this process low priority, and terminate it when process `pid` ends."""
    os.nice(NICENESS)
    threading.Thread(target=_end_with, args=[pid], daemon=True).start()


def _is_there(name: str) -> bool:
    try:
        return items.FIND[name]() is not None
    except ToolchainError:  # it says more about what is missing
        return False


def _log(pid: int) -> Path:
    """A new log of this run, named after its `make`; those whose `make` has ended are deleted."""
    folder = cache_root() / "log"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("background-*.log"):
        owner = old.stem.removeprefix("background-")
        if owner == str(pid) or not Path("/proc", owner).exists():
            old.unlink(missing_ok=True)
    return folder / f"background-{pid}.log"


def _end_with(pid: int) -> None:
    try:
        # Becomes readable when the process ends, also while nobody has collected its exit code.
        select.select([os.pidfd_open(pid)], [], [])
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
