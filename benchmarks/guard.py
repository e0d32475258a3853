"""Ends a process group when the benchmark that started it dies without a chance to clean up (SIGKILL, out of memory).

Run as a program of its own, by path and without site packages: it must start quickly and hold little memory beside a
load that is being measured. It waits on a pipe from the benchmark. The kernel closes that pipe however the benchmark
ends. Linux could signal AIPerf by itself (PR_SET_PDEATHSIG), but only its leader, and not its workers.
"""

import os
import signal
import sys
import time

RELIEVED = b"."  # the benchmark has ended the group itself
PATIENCE_S = 5.0


def main(group: int, scratch: str | None = None) -> None:
    """Wait for the pipe to close; end the group, first politely, unless the benchmark has said that it is gone.

    The folder `scratch`, which nobody is left to delete then, goes with the group.
    """
    if os.read(sys.stdin.fileno(), len(RELIEVED)):
        return
    _end(group)
    if scratch is not None:
        import shutil

        shutil.rmtree(scratch, ignore_errors=True)


def _end(group: int) -> None:
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            os.killpg(group, number)
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                os.killpg(group, 0)
                time.sleep(0.05)
    except ProcessLookupError:
        pass  # gone


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:3])
