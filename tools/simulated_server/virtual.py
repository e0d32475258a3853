"""The model on a clock of its own: what a whole load would see, computed at once. For studies, and for the truth."""

import heapq
import itertools
import random
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from tools.simulated_server.model import Arrangement, Engine, Sequence, engines, two_choices


@dataclass(frozen=True)
class Arrival:
    """A request: when it comes (seconds), and its lengths in tokens."""

    at: float
    prompt: int
    answer: int


@dataclass
class Answer:
    """Times of a request in seconds of the virtual clock."""

    at: float
    first: float = 0.0
    end: float = 0.0
    tokens: int = 0


def poisson(rate: float, count: int, prompt: int, answer: int, seed: int) -> list[Arrival]:
    """`count` arrivals at `rate` a second."""
    draw, now, arrivals = random.Random(seed), 0.0, []
    for _ in range(count):
        now += draw.expovariate(rate)
        arrivals.append(Arrival(now, prompt, answer))
    return arrivals


def play(arrangement: Arrangement, arrivals: SequenceOf[Arrival], seed: int) -> list[Answer]:
    """What becomes of each arrival, in their order."""
    return _Clock(arrangement, arrivals, seed).run()


class _Clock:
    """Events in order of time: a request reaches an engine, or an engine ends a step."""

    def __init__(self, arrangement: Arrangement, arrivals: SequenceOf[Arrival], seed: int) -> None:
        self._arrangement, self._arrivals = arrangement, arrivals
        self._prefill, self._decode = engines(arrangement, seed)
        self._chooser = random.Random(seed)
        self._answers = [Answer(arrival.at) for arrival in arrivals]
        self._order = itertools.count()  # events of the same moment keep the order in which they were made
        self._events: list[tuple[float, int, str, int]] = []
        self._all = [*self._prefill, *self._decode]
        self._steps = [None] * len(self._all)
        self._busy = [False] * len(self._all)

    def run(self) -> list[Answer]:
        for number, arrival in enumerate(self._arrivals):
            self._at(arrival.at, "arrive", number)
        while self._events:
            now, _, what, number = heapq.heappop(self._events)
            if what == "arrive":
                self._arrive(now, number)
            elif what == "transferred":
                self._give(now, self._decode, Sequence(number, 1, self._arrivals[number].answer))
            else:
                self._ended(now, number)
        return self._answers

    def _at(self, when: float, what: str, number: int) -> None:
        heapq.heappush(self._events, (when, next(self._order), what, number))

    def _arrive(self, now: float, number: int) -> None:
        arrival = self._arrivals[number]
        prompt = self._arrangement.computed(arrival.prompt)
        if self._prefill:
            self._give(now, self._prefill, Sequence(number, prompt, 1))
        else:
            self._give(now, self._decode, Sequence(number, prompt, arrival.answer))

    def _give(self, now: float, choices: list[Engine], sequence: Sequence) -> None:
        engine = two_choices(choices, self._chooser)
        engine.add(sequence)
        number = self._all.index(engine)
        if not self._busy[number]:
            self._begin(now, number)

    def _begin(self, now: float, number: int) -> None:
        step = self._all[number].step()
        self._steps[number] = step  # pyright: ignore[reportArgumentType]
        self._busy[number] = step is not None
        if step is not None:
            self._at(now + step.seconds, "step", number)

    def _ended(self, now: float, number: int) -> None:
        step = self._steps[number]
        assert step is not None
        if number < len(self._prefill):
            for request in step.ended:  # pyright: ignore
                wait = self._arrangement.transfer_latency
                wait += self._arrangement.transfer_seconds * self._arrivals[request].prompt
                self._at(now + wait, "transferred", request)
        else:
            for request in step.tokens:  # pyright: ignore
                answer = self._answers[request]
                answer.first = answer.first or now
                answer.tokens += 1
                answer.end = now
        self._begin(now, number)
