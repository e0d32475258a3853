"""How many requests a run sends at one rate: as many as what is known of the service asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

# The measured window spans at least this many mean E2E latencies, so that what is in flight at its ends weighs little,
# and this many times the memory of the queue. The warm-up before it, likewise, or a part of the window.
LATENCIES, MEMORIES = 10, 20
WARMUP_LATENCIES, WARMUP_MEMORIES, WARMUP_PART = 3, 8, 0.3
# However slowly a service settles, more of a run is measured than is left out.
LONGEST_WARMUP_PART = 0.5


@dataclass(frozen=True)
class Length:
    """How many requests a run sends: `warmup` that are expected to be left out, and `measured`."""

    warmup: int
    measured: int

    @property
    def total(self) -> int:
        """All requests."""
        return self.warmup + self.measured


def plan_length(rate: float, e2e_s: float, memory: float, least: Length, most: int) -> Length:
    """Requests needed at `rate` a second when one takes `e2e_s` seconds and `memory` is that of the queue (requests).

    `least`: what the scenario asks for in any case; `most`: requests of a window that it does not go beyond by itself.
    """
    flying = e2e_s * rate
    wanted = max(LATENCIES * flying, MEMORIES * memory)
    measured = max(least.measured, math.ceil(min(wanted, most)))
    warmup = max(WARMUP_LATENCIES * flying, WARMUP_MEMORIES * memory, WARMUP_PART * measured)
    return Length(max(least.warmup, math.ceil(min(warmup, LONGEST_WARMUP_PART * measured))), measured)
