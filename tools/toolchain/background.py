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

from . import items
from .cache import cache_root
from .console import home_relative, say
from .versions import ROOT

ITEM = "background"
# Compilers take what the tests in the foreground leave: those have time limits.
NICENESS = 15


def start(pid: int, names: Sequence[str]) -> None:
    """Make what is missing of `names` without waiting for it, for as long as process `pid` lives."""
    missing = [name for name in names if items.FIND[name]() is None]
    if not missing:
        return
    log = cache_root() / "log" / "background.log"
    log.parent.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    say(ITEM, f"making {', '.join(missing)} at low priority; its progress goes to {home_relative(log)}")
    command = [sys.executable, "-m", __package__ or "", "ensure", "--while", str(pid), *missing]
    with log.open("ab") as output:
        # Errors go where this run's errors go. A session of its own: it ends with `pid`, not by the terminal's Ctrl-C.
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, start_new_session=True)


def only_while(pid: int) -> None:
    """Give this process low priority, and terminate it when process `pid` ends."""
    os.nice(NICENESS)
    threading.Thread(target=_end_with, args=[pid], daemon=True).start()


def _end_with(pid: int) -> None:
    try:
        # Becomes readable when the process ends, also while nobody has collected its exit code.
        select.select([os.pidfd_open(pid)], [], [])
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
