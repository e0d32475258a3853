"""Study 3: does a comparison find a difference where there is none, and one of 1.3 times where there is?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel

from benchmarks.ratio import Ratio, ratio
from tools.simulated_server.model import Speed
from tools.study.capacity import Search
from tools.study.services import Service


class Comparisons(BaseModel):
    """Comparisons of two services, each with a search of its own on both. `truth` is the true ratio of their rates."""

    base: str
    candidate: str
    truth: float
    ratios: list[Ratio]

    def count(self, verdict: str) -> int:
        """How many comparisons ended so."""
        return sum(item.verdict == verdict for item in self.ratios)


def compare(
    base: Service, candidate: Service, truth: float, searches: tuple[Sequence[Search], Sequence[Search]]
) -> Comparisons:
    """Compare searches of both services, pair by pair.

    They must have no seed in common: searches that share their luck would find no difference for the wrong reason.
    """
    assert not {one.seed for one in searches[0]} & {other.seed for other in searches[1]}  # noqa: S101
    ratios = [ratio(one.boundary, other.boundary) for one, other in zip(*searches, strict=True)]
    return Comparisons(base=base.name, candidate=candidate.name, truth=truth, ratios=ratios)


def faster(service: Service, factor: float) -> Service:
    """The same service with every step `factor` times as fast."""
    speed = service.arrangement.speed
    quick: Speed = replace(
        speed,
        base=speed.base / factor,
        per_sequence=speed.per_sequence / factor,
        per_prompt_token=speed.per_prompt_token / factor,
    )
    arrangement = replace(service.arrangement, speed=quick)
    return replace(service, name=f"{service.name}, {factor:g} times as fast", arrangement=arrangement)
