"""How much of the load generator a load takes: asked before anything is sent, when another client can still be chosen.

docs/explanation/client-ceiling.md has the measurements, on one kind of machine. They are a guide, not a proof: what the
load generator really used, and how late it sent, is watched while it works (benchmarks/validity/client.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

# CPU milliseconds of all AIPerf processes for one request: for itself, for each thousand tokens of its prompt, and for
# each hundred tokens of its answer. A test holds them against docs/explanation/data/client-ceiling.json.
REQUEST_MS, PROMPT_MS, ANSWER_MS = 4.5, 0.34, 4.7
# A queue in front of a worker that is busy more than half of the time makes requests late by as much as they take.
NEAR = 0.5


@dataclass(frozen=True)
class Demand:
    """What a load asks of the load generator. `cpu_ms`: for a mean request; `cores`: at the rate."""

    rate: float
    workers: int
    cpu_ms: float

    @property
    def cores(self) -> float:
        """Cores that all its processes take together."""
        return self.rate * self.cpu_ms / 1000

    @property
    def near(self) -> bool:
        """Whether that is much of what its workers, a core each, can do."""
        return self.cores > NEAR * self.workers

    def __str__(self) -> str:
        return (
            f"{self.rate:g} req/s at {self.cpu_ms:.1f} ms of CPU each take about {self.cores:.2f} cores, "
            f"its workers have {self.workers}"
        )


def demand(rate: float, lengths: Iterable[tuple[int, int]], workers: int) -> Demand:
    """What requests of `lengths` (tokens of prompt and answer) take at `rate` a second."""
    prompt, answer = np.mean(list(lengths), axis=0)
    return Demand(rate, workers, REQUEST_MS + PROMPT_MS * float(prompt) / 1000 + ANSWER_MS * float(answer) / 100)
