"""Processes that outlive the one that started them, identified so that no other process is ever ended by mistake."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAD_VARIABLE = "PD_MI325X_HEAD"  # environment variable that every process of a local head inherits
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Process:
    """A process id with its start time (clock ticks since boot, /proc/PID/stat field 22): ids are used again."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Process":
        return cls(pid, _start_ticks(pid))

    def as_properties(self) -> dict[str, Any]:
        return {"pid": self.pid, "started": self.started}

    def alive(self) -> bool:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return _start_ticks(self.pid) == self.started and _state(self.pid) != "Z"
        return False

    def end(self, seconds: float) -> bool:
        """SIGTERM, then wait. False when it is still there after `seconds`."""
        deadline = time.monotonic() + seconds
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True


def end_leftovers(directory: str) -> None:
    """SIGKILL what was started with `directory` in HEAD_VARIABLE. Only after its supervisor was killed is there any."""
    while pids := started_for(directory):
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def started_for(directory: str) -> list[int]:
    """Processes, other than this one, that carry `directory` in HEAD_VARIABLE and have not ended."""
    marker, found = f"{HEAD_VARIABLE}={directory}\0".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # gone meanwhile, or another user's
                if marker in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def supervisors() -> dict[int, list[str]]:
    """Supervisors of local Ray heads on this machine: process id -> the words of the command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if "infra.provider.supervisor" in words:
                    found[int(entry.name)] = words
    return found


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _state(pid: int) -> str:
    return _stat(pid)[0]


def _start_ticks(pid: int) -> int:
    return int(_stat(pid)[19])
