"""Watches the load generator while it works: does it have a core to spare, and does the machine's clock run evenly?"""

from __future__ import annotations

import contextlib
import math
import time
from pathlib import Path

import psutil
from pydantic import BaseModel, TypeAdapter

# Reading /proc of AIPerf's dozen processes takes some milliseconds of a core.
EVERY_S = 1.0
# AIPerf starts all its processes before the first request, which may take it a minute: children are looked for each
# time at first, and now and then later.
FIRST_LOOKS = 10
SEARCH_EVERY_S = 10.0


class ClientSample(BaseModel):
    """One look. `wall_s` is the time of day (seconds since the epoch), `monotonic_s` of a clock that nobody sets.

    Since the look before, over the time that passed: `busiest` is the CPU time of the busiest process (1 is one core,
    as much as a Python process can use), `wanting` the time that a process used a core or waited for one, where that
    is longest, `tree` the CPU time of all processes of the load generator, `machine` the share of all cores that were
    busy with whatever it was.
    """

    wall_s: float
    monotonic_s: float
    busiest: float
    wanting: float
    tree: float
    machine: float


CLIENT = "client.json"
SAMPLES = TypeAdapter(list[ClientSample])


class ClientWatch:
    """Takes a look about once a second, whenever it is called more often than that."""

    def __init__(self) -> None:
        self.samples: list[ClientSample] = []
        self._processes: dict[int, psutil.Process] = {}
        self._times_before: dict[int, tuple[float, float]] = {}
        self._searched = self._looked = -math.inf

    def look(self, leader: int) -> None:
        """Look at the process `leader` and its descendants."""
        now = time.monotonic()
        if now - self._looked < EVERY_S:
            return
        if now - self._searched >= SEARCH_EVERY_S or len(self.samples) < FIRST_LOOKS:
            self._searched = now
            with contextlib.suppress(psutil.Error):
                top = psutil.Process(leader)
                self._processes |= {
                    p.pid: p for p in (top, *top.children(recursive=True)) if p.pid not in self._processes
                }
        passed, self._looked = now - self._looked, now
        times = self._times()
        spent = [
            (used - self._times_before[pid][0], waited - self._times_before[pid][1])
            for pid, (used, waited) in times.items()
            if pid in self._times_before
        ]
        self._times_before = times
        wall, monotonic = _clocks()
        self.samples.append(
            ClientSample(
                wall_s=wall,
                monotonic_s=monotonic,
                busiest=round(max((used for used, _ in spent), default=0.0) / passed, 4),
                wanting=round(max((used + waited for used, waited in spent), default=0.0) / passed, 4),
                tree=round(sum(used for used, _ in spent) / passed, 4),
                machine=psutil.cpu_percent() / 100,
            )
        )

    def _times(self) -> dict[int, tuple[float, float]]:
        """Seconds of CPU, and of waiting for it, of each process that is still there."""
        found: dict[int, tuple[float, float]] = {}
        for pid, process in [*self._processes.items()]:
            try:
                times = process.cpu_times()
            except psutil.Error:
                del self._processes[pid]
            else:
                found[pid] = (times.user + times.system, _waited(pid))
        return found


def _waited(pid: int) -> float:
    """Seconds that a process's main thread was ready to run and had no core; 0 where the kernel does not say."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _clocks() -> tuple[float, float]:
    """Both clocks at one moment: read again where something came between the readings."""
    wall, before, after = 0.0, 0.0, math.inf
    for _ in range(5):
        if after - before > 0.001:
            before, wall, after = time.monotonic(), time.time(), time.monotonic()
    return wall, before
