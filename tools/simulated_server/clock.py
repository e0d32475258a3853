"""Two clocks for one model: a virtual one, on which a load is over at once, and asyncio's, on which it takes its time.

Seconds are the model's on both. A call is told the moment it was planned for, not the one it happens at: what follows
from it is planned from there, so the lateness of a real timer does not add up.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Protocol

Call = Callable[[float], None]

# Upper bounds of the buckets in which lateness is counted, in seconds of the wall clock.
LATE_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 1.0)


class Clock(Protocol):
    """Tells the time and calls at a time."""

    def now(self) -> float:
        """Seconds since it began."""
        ...

    def at(self, when: float, call: Call) -> None:
        """Call with `when` at that moment; calls of one moment come in the order in which they were planned."""
        ...


class VirtualClock:
    """Jumps from one planned call to the next."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._planned: list[tuple[float, int, Call]] = []

    def now(self) -> float:
        """The moment of the call under way."""
        return self._now

    def at(self, when: float, call: Call) -> None:
        """Plan a call."""
        heapq.heappush(self._planned, (when, next(self._order), call))

    def run(self) -> None:
        """Until nothing is planned any more."""
        while self._planned:
            self._now, _, call = heapq.heappop(self._planned)
            call(self._now)


class Lateness:
    """How late a clock's calls came, in seconds of the wall clock: `counts` by bucket, the last one for all above."""

    def __init__(self) -> None:
        self.counts = [0] * (len(LATE_BUCKETS) + 1)
        self.total = 0.0
        self.largest = 0.0

    def add(self, seconds: float) -> None:
        """Note one call."""
        index = next((i for i, bound in enumerate(LATE_BUCKETS) if seconds <= bound), len(LATE_BUCKETS))
        self.counts[index] += 1
        self.total += seconds
        self.largest = max(self.largest, seconds)


class AsyncioClock:
    """asyncio's timers, `scale` times as fast as the wall clock.

    asyncio waits in whole milliseconds (it rounds the time-out of epoll up), so a call comes up to 1 ms late, and later
    when the process has no CPU: `lateness` says how much. A scale of 10 makes that 10 ms of the model.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, scale: float = 1.0) -> None:
        self._loop = loop
        self._begin = loop.time()
        self._scale = scale
        self.lateness = Lateness()

    def now(self) -> float:
        """The model's time."""
        return (self._loop.time() - self._begin) * self._scale

    def at(self, when: float, call: Call) -> None:
        """Plan a call; one whose moment has passed comes as soon as possible."""
        self._loop.call_at(self._begin + when / self._scale, self._fire, when, call)

    def _fire(self, when: float, call: Call) -> None:
        self.lateness.add(max(0.0, (self.now() - when) / self._scale))
        call(when)
