"""The model on a clock of its own: what a whole load would see, computed at once. For studies, and for the truth."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tools.simulated_server.clock import VirtualClock
from tools.simulated_server.deployment import Answer, Deployment, Work
from tools.simulated_server.model import Arrangement
from tools.simulated_server.prefix_cache import Blocks

__all__ = ["Answer", "Arrival", "play", "poisson"]


@dataclass(frozen=True)
class Arrival:
    """A request: when it comes (seconds), its lengths in tokens, and the blocks of its prompt, if caching matters."""

    at: float
    prompt: int
    answer: int
    blocks: Blocks = ()


def poisson(rate: float, count: int, prompt: int, answer: int, seed: int) -> list[Arrival]:
    """`count` arrivals at `rate` a second."""
    draw, now, arrivals = random.Random(seed), 0.0, list[Arrival]()
    for _ in range(count):
        now += draw.expovariate(rate)
        arrivals.append(Arrival(now, prompt, answer))
    return arrivals


def play(arrangement: Arrangement, arrivals: Sequence[Arrival], seed: int) -> list[Answer]:
    """What becomes of each arrival, in their order."""
    clock = VirtualClock()
    deployment = Deployment(arrangement, seed, clock)
    answers = [Answer(arrival.at) for arrival in arrivals]

    def arrive(_now: float, number: int) -> None:
        arrival = arrivals[number]
        _, answers[number] = deployment.submit(Work(arrival.prompt, arrival.answer, arrival.blocks))

    for number, arrival in enumerate(arrivals):
        clock.at(arrival.at, partial(arrive, number=number))
    clock.run()
    return answers
