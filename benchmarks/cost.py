"""What serving costs: money for tokens, and nodes for a load, counted exactly and in whole sets.

Exact and whole numbers are always told together. A whole number of sets is what has to be paid for; but a saving that
is one step of rounding is gone with a slightly different load (docs/explanation/savings.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import BaseModel

from benchmarks.errors import BenchmarkError

_SECONDS_PER_HOUR = 3600
_MILLION = 1e6
# Divisions of decimal rates are off by some 1e-16: 2.1 / 0.7 is 3.0000000000000004, and three sets are enough.
_ROUNDING_ERROR = 1e-9


@dataclass(frozen=True)
class Capacity:
    """What one set of a deployment, all its prefill and decode or aggregated replicas, serves under an SLO.

    rate: requests per second, the best estimate; lowest and highest: the interval it is in. gpus, nodes: of the set.
    output_tokens: mean of a request.
    """

    rate: float
    lowest: float
    highest: float
    gpus: int
    nodes: int
    output_tokens: float

    def __post_init__(self) -> None:
        if not 0 < self.lowest <= self.rate <= self.highest:
            raise BenchmarkError(
                f"no cost without a rate above 0 that meets the SLO, inside its interval: {self.rate:g} req/s "
                f"in [{self.lowest:g}, {self.highest:g}]"
            )
        if not self.output_tokens > 0:
            raise BenchmarkError(f"no cost without output tokens: a request has {self.output_tokens:g} on average")
        if self.gpus <= 0:
            raise BenchmarkError("no cost without GPUs: this deployment runs on CPUs")


class Interval(BaseModel):
    """A number and the interval it is in, in the same unit."""

    value: float
    lowest: float
    highest: float


class Count(BaseModel):
    """A number of nodes or sets for a load: `exact` with its fraction, `whole` as they can be had."""

    exact: float
    whole: int


class Saving(BaseModel):
    """The part of the base's nodes that the candidate does not need, 0.57 for 57 %; below 0 when it needs more."""

    exact: float
    whole: float


def cost_per_million_output_tokens(per_gpu_hour: float, capacity: Capacity) -> Interval:
    """Money for a million output tokens of a set that serves all it can under the SLO, in the price's currency.

    Input tokens are not charged for: they are part of the work behind the output. A set that is not full costs more.
    """

    def at(rate: float) -> float:
        tokens_per_hour = rate * capacity.output_tokens * _SECONDS_PER_HOUR
        return per_gpu_hour * capacity.gpus / tokens_per_hour * _MILLION

    return Interval(value=at(capacity.rate), lowest=at(capacity.highest), highest=at(capacity.lowest))


def sets_for(load: float, rate_of_a_set: float) -> Count:
    """How many sets serve a load, both in requests per second. Raises BenchmarkError unless both are above 0."""
    if not (load > 0 and rate_of_a_set > 0 and math.isfinite(load)):
        raise BenchmarkError(f"a load of {load:g} req/s on sets that serve {rate_of_a_set:g}: both must be above 0")
    exact = load / rate_of_a_set
    return Count(exact=exact, whole=math.ceil(exact - _ROUNDING_ERROR))


def nodes_for(load: float, rate_of_a_set: float, nodes_of_a_set: int) -> Count:
    """How many nodes serve a load in requests per second, when nodes come in sets."""
    sets = sets_for(load, rate_of_a_set)
    return Count(exact=sets.exact * nodes_of_a_set, whole=sets.whole * nodes_of_a_set)


def saving(base: Count, candidate: Count) -> Saving:
    """What a candidate saves against a base, with and without rounding to whole sets."""
    return Saving(exact=1 - candidate.exact / base.exact, whole=1 - candidate.whole / base.whole)
