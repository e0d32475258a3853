"""What a check may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from benchmarks.client_ceiling import Demand
from benchmarks.client_watch import ClientSample
from benchmarks.evidence import KvProof
from benchmarks.priming import Priming
from benchmarks.records import Request
from benchmarks.scenario import Scenario
from benchmarks.slo import Slo
from benchmarks.summary import RateSummary
from benchmarks.target import Target


@dataclass(frozen=True)
class Seen:
    """Everything that is known of one rate. What was not collected is None.

    requests: all that were sent, in order of sending, warm-up first. due: how many should have been sent; None: as many
    as the scenario says. alike: prompts that go on like another one. planned_hit_rate: least and greatest
    share of the prompt tokens that the workload can find in prefix caches; None: the scenario's. hit_rate: the share
    that the engines found there. engine_s: mean seconds that a request spent in engines, at most. client: how the load
    generator fared. demand: what it was expected to take.
    """

    scenario: Scenario
    summary: RateSummary
    requests: Sequence[Request]
    proof: KvProof
    alike: int
    target: Target | None = None
    due: int | None = None
    planned_hit_rate: tuple[float, float] | None = None
    hit_rate: float | None = None
    engine_s: float | None = None
    client: Sequence[ClientSample] | None = None
    demand: Demand | None = None

    @cached_property
    def warmup(self) -> Sequence[Request]:
        """Requests that are sent and accounted for, but not in the statistics."""
        return self.requests[: self.summary.warmup_requests]

    @cached_property
    def measured(self) -> Sequence[Request]:
        """Requests of the window."""
        return self.requests[self.summary.warmup_requests :]

    @cached_property
    def good(self) -> list[Request]:
        """Complete answers of the window."""
        return [request for request in self.measured if request.fault() is None]

    @property
    def window(self) -> tuple[float, float]:
        """First and last measured request sent; seconds since the epoch."""
        return (self.measured[0].sent_s, self.measured[-1].sent_s) if self.measured else (0.0, 0.0)

    @property
    def mean_e2e_s(self) -> float:
        """Of the window's complete answers; 0 without any."""
        return (self.summary.e2e.mean or 0.0) / 1000

    @property
    def bounds(self) -> list[Slo]:
        """Every bound that the scenario is to answer."""
        return [*self.scenario.slo, *(bound for bounds in self.scenario.also.values() for bound in bounds)]

    def count(self, wrong: Callable[[Request], bool]) -> tuple[int, int]:
        """How many requests are wrong: in the warm-up, and in the window."""
        return sum(map(wrong, self.warmup)), sum(map(wrong, self.measured))


@dataclass(frozen=True)
class RunSeen:
    """What holds for a whole run. priming is None when the service was not woken; image as in RunInfo; damaged: a line
    for each of the run's files that is not whole.
    """

    target: Target
    scenario: Scenario
    priming: Priming | None
    image: Mapping[str, list[str]] = field(default_factory=dict)
    damaged: Sequence[str] = ()


@dataclass(frozen=True)
class Side:
    """One side of a comparison. `name` is what sentences call it; image as in RunInfo, of all its runs.

    client: what measured, such as AIPerf, and the versions of it that the runs were made with. started: each run's.
    """

    name: str
    target: Target
    scenario: Scenario
    image: Mapping[str, list[str]] = field(default_factory=dict)
    client: Mapping[str, list[str]] = field(default_factory=dict)
    started: Sequence[datetime] = ()


@dataclass(frozen=True)
class Pair:
    """The two sides of a comparison."""

    base: Side
    candidate: Side
