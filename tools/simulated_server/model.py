"""The queueing model of one engine replica: continuous batching with chunked prefill, step by step, on no clock.

A step computes one token for every sequence that decodes, and prompt tokens of waiting requests up to the step's token
budget, first come first served. It takes

    seconds = base + per_sequence * decoding + per_prompt_token * prompt tokens,  times noise

so a long prompt that is computed beside answers delays all of them by its chunks: what prefill/decode disaggregation
takes away. A prompt whose last chunk is in a step has its first token at the end of that step. Left out: memory (every
sequence fits), preemption, the length of contexts, speculative decoding.
"""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Speed:
    """How fast an engine is. Seconds; token_budget: prompt and answer tokens of a step; noise: sigma of a lognormal."""

    base: float
    per_sequence: float
    per_prompt_token: float
    token_budget: int = 8192
    max_sequences: int = 256
    noise: float = 0.0


@dataclass
class Sequence:
    """A request inside an engine. prompt: tokens still to compute; answer: tokens still to write."""

    id: int
    prompt: int
    answer: int


@dataclass
class Step:
    """What one step took (seconds), which sequences got a token at its end, and which of them their last."""

    seconds: float
    tokens: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)


class Engine:
    """One replica. Who drives it adds sequences, asks for a step, and lets its seconds pass before the next."""

    def __init__(self, speed: Speed, seed: int) -> None:
        self._speed = speed
        self._random = random.Random(seed)
        self._waiting: deque[Sequence] = deque()
        self._decoding: list[Sequence] = []

    @property
    def load(self) -> int:
        """Sequences that wait or decode: what a router compares."""
        return len(self._waiting) + len(self._decoding)

    def add(self, sequence: Sequence) -> None:
        self._waiting.append(sequence)

    def step(self) -> Step | None:
        """The next step; None when there is nothing to do."""
        if not self.load:
            return None
        prefilled, chunk = self._prefill()
        seconds = self._speed.base + self._speed.per_sequence * len(self._decoding)
        step = Step((seconds + self._speed.per_prompt_token * chunk) * self._noise())
        self._decoding += prefilled
        for sequence in self._decoding:
            sequence.answer -= 1
            step.tokens.append(sequence.id)
            if sequence.answer == 0:
                step.ended.append(sequence.id)
        if step.ended:
            self._decoding = [sequence for sequence in self._decoding if sequence.answer]
        return step

    def _prefill(self) -> tuple[list[Sequence], int]:
        """Sequences whose prompt is complete with this step, and the prompt tokens that it computes."""
        budget = self._speed.token_budget - len(self._decoding)
        done: list[Sequence] = []
        chunk = 0
        while self._waiting and budget > 0 and len(self._decoding) + len(done) < self._speed.max_sequences:
            first = self._waiting[0]
            taken = min(first.prompt, budget)
            first.prompt -= taken
            budget -= taken
            chunk += taken
            if first.prompt:
                break
            done.append(self._waiting.popleft())
        return done, chunk

    def _noise(self) -> float:
        return self._random.lognormvariate(0.0, self._speed.noise) if self._speed.noise else 1.0


@dataclass(frozen=True)
class Arrangement:
    """Replicas of a deployment. Aggregated: prefill is 0 and `decode` counts the replicas.

    prefix_hit: share of each prompt that is in the prefix cache and not computed. transfer_seconds: of the KV of one
    prompt token from prefill to decode; transfer_latency: of each transfer besides.
    """

    speed: Speed
    decode: int
    prefill: int = 0
    prefix_hit: float = 0.0
    transfer_seconds: float = 0.0
    transfer_latency: float = 0.0

    @property
    def disaggregated(self) -> bool:
        return self.prefill > 0

    def computed(self, prompt: int) -> int:
        """Tokens of a prompt that are not cached; the last one always is computed."""
        return max(1, prompt - int(prompt * self.prefix_hit))


def two_choices(engines: list[Engine], chooser: random.Random) -> Engine:
    """Ray Serve's router: of two replicas drawn at random the one with less to do."""
    if len(engines) == 1:
        return engines[0]
    one, other = chooser.sample(engines, 2)
    return one if one.load <= other.load else other


def engines(arrangement: Arrangement, seed: int) -> tuple[list[Engine], list[Engine]]:
    """(prefill replicas, decode or aggregated replicas), each with noise of its own."""
    seeds: Iterator[int] = iter(range(seed * 1000, seed * 1000 + arrangement.prefill + arrangement.decode))
    return (
        [Engine(arrangement.speed, next(seeds)) for _ in range(arrangement.prefill)],
        [Engine(arrangement.speed, next(seeds)) for _ in range(arrangement.decode)],
    )
