"""What still runs when a rehearsal is over: plugins of a Pulumi that was killed, or told twice to leave."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

_GRACE_S = 3.0  # a provider plugin ends in well under a second


def end_leftovers(folder: Path) -> None:
    """End the processes whose PULUMI_HOME is in `folder`: the rehearsal started them, or its shell."""
    left = list(_started_for(folder))
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, stubborn = psutil.wait_procs(left, timeout=_GRACE_S)
    for process in stubborn:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(stubborn, timeout=_GRACE_S)


def _started_for(folder: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # gone meanwhile, or another user's
            home = process.environ().get("PULUMI_HOME")
            if home and Path(home).is_relative_to(folder) and process.pid != os.getpid():
                yield process
