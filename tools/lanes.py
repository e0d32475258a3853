"""Runs command lines beside each other and shows what each says, line by line, under its name: `make test`.

usage: python3 -m tools.lanes NAME=COMMAND NAME=COMMAND …
"""

import os
import shlex
import signal
import subprocess
import sys
import threading

from tools.toolchain.console import Stopwatch

_END_SECONDS = 120  # what a test tier may take to take down what it has deployed


class Lane:
    """One command in a process group of its own, so that Ctrl-C reaches it once and whole."""

    def __init__(self, name: str, command: str) -> None:
        self.name = name
        self.watch = Stopwatch()
        self.process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None  # noqa: S101  asked for above
        for line in self.process.stdout:
            print(f"{self.name} | {line}", end="", flush=True)
        code = self.process.wait()
        end = "passed" if code == 0 else f"FAILED with exit code {code}"
        print(f"{self.name} | {end} after {self.watch}", flush=True)

    def interrupt(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)


def run(commands: dict[str, str]) -> int:
    """Start all, wait for all: a lane that fails does not hide what the others find. Returns an exit code."""
    lanes = [Lane(name, command) for name, command in commands.items()]
    try:
        for lane in lanes:
            lane.reader.join()
    except KeyboardInterrupt:
        for lane in lanes:
            lane.interrupt()
        for lane in lanes:
            lane.reader.join(_END_SECONDS)
        return 130
    failed = [lane.name for lane in lanes if lane.process.returncode]
    if failed:
        print(f"error: {' and '.join(failed)} failed (lines above that begin with the name)", file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    """Parse NAME=COMMAND words."""
    pairs = [word.partition("=") for word in sys.argv[1:]]
    if not pairs or not all(name and command for name, _, command in pairs):
        print(__doc__, file=sys.stderr)
        return 2
    return run({name: command for name, _, command in pairs})


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
