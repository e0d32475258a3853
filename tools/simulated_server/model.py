"""The queueing model of one engine replica: continuous batching with chunked prefill, step by step, on no clock.

A step computes one token for every sequence that decodes, and prompt tokens of waiting requests up to the step's token
budget, first come first served. It takes

    seconds = base + per_sequence * decoding + per_prompt_token * prompt tokens,  times noise

so a long prompt that is computed beside answers delays all of them by its chunks: what prefill/decode disaggregation
takes away. A prompt whose last chunk is in a step has its first token at the end of that step. Left out: memory (every
sequence fits), preemption, the length of contexts, speculative decoding.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import Protocol

from tools.simulated_server.prefix_cache import Blocks, PrefixCache


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
    """A request inside an engine. prompt: tokens still to compute; answer: tokens to write, at least 1.

    blocks: those of the whole prompt, none where no cache is to be asked or filled. hit: tokens that the cache had,
    None until it was asked, which is when the first chunk is scheduled.
    """

    id: int
    prompt: int
    answer: int
    blocks: Blocks = ()
    hit: int | None = None


@dataclass(slots=True)
class Step:
    """What one step took (seconds), which sequences got a token at its end, and which of them their last or first."""

    seconds: float
    tokens: list[int]
    ended: list[int]
    prefilled: list[Sequence]


class Engine:
    """One replica. Who drives it adds sequences, asks for a step, and lets its seconds pass before the next.

    A step costs no time here for sequences that merely go on: where each ends is known when it begins.
    """

    def __init__(self, speed: Speed, seed: int, cache: PrefixCache | None = None) -> None:
        self._speed = speed
        self._random = random.Random(seed)
        self._cache = cache
        self._waiting: deque[Sequence] = deque()
        self._decoding: dict[int, Sequence] = {}
        self._steps = 0
        self._ends: dict[int, list[int]] = {}  # number of a step -> sequences whose last token it writes

    @property
    def load(self) -> int:
        """Sequences that wait or decode: what a router compares."""
        return len(self._waiting) + len(self._decoding)

    def add(self, sequence: Sequence) -> None:
        """Take a sequence in; it waits until a step has room for its prompt."""
        self._waiting.append(sequence)

    def remove(self, sequence: int) -> None:
        """Give a sequence up, as when its client is gone. The step under way still counts it."""
        self._waiting = deque(waiting for waiting in self._waiting if waiting.id != sequence)
        self._decoding.pop(sequence, None)

    def step(self) -> Step | None:
        """The next step; None when there is nothing to do."""
        if not self.load:
            return None
        prefilled, chunk = self._prefill()
        seconds = self._speed.base + self._speed.per_sequence * len(self._decoding)
        seconds += self._speed.per_prompt_token * chunk
        for sequence in prefilled:
            self._decoding[sequence.id] = sequence
            self._ends.setdefault(self._steps + sequence.answer - 1, []).append(sequence.id)
        tokens = [*self._decoding]
        ended = [sequence for sequence in self._ends.pop(self._steps, ()) if sequence in self._decoding]
        for sequence in ended:
            del self._decoding[sequence]
        self._steps += 1
        return Step(seconds * self._noise(), tokens, ended, prefilled)

    def _prefill(self) -> tuple[list[Sequence], int]:
        """Sequences whose prompt is complete with this step, and the prompt tokens that it computes."""
        budget = self._speed.token_budget - len(self._decoding)
        done: list[Sequence] = []
        chunk = 0
        while self._waiting and budget > 0 and len(self._decoding) + len(done) < self._speed.max_sequences:
            first = self._waiting[0]
            self._look_up(first)
            taken = min(first.prompt, budget)
            first.prompt -= taken
            budget -= taken
            chunk += taken
            if first.prompt:
                break
            done.append(self._waiting.popleft())
            if self._cache:
                self._cache.keep(first.blocks)
        return done, chunk

    def _look_up(self, sequence: Sequence) -> None:
        if sequence.hit is None:
            sequence.hit = self._cache.hit(sequence.blocks, sequence.prompt) if self._cache else 0
            sequence.prompt -= sequence.hit

    def _noise(self) -> float:
        return self._random.lognormvariate(0.0, self._speed.noise) if self._speed.noise else 1.0


@dataclass(frozen=True)
class Arrangement:
    """Replicas of a deployment. Aggregated: prefill is 0 and `decode` counts the replicas.

    prefix_hit: share of each prompt that is in the prefix cache and not computed, where requests come without blocks.
    transfer_seconds: of the KV of one prompt token from prefill to decode; transfer_latency: of each transfer besides.
    block_size: tokens of a KV block. cache_tokens: what each replica's prefix cache holds, 0: it has none.
    kv_bytes: of the KV of one token.
    """

    speed: Speed
    decode: int
    prefill: int = 0
    prefix_hit: float = 0.0
    transfer_seconds: float = 0.0
    transfer_latency: float = 0.0
    block_size: int = 16
    cache_tokens: int = 0
    kv_bytes: int = 1024

    @property
    def disaggregated(self) -> bool:
        """Whether prefill and decode are apart."""
        return self.prefill > 0

    def computed(self, prompt: int) -> int:
        """Tokens of a prompt that are not cached; the last one always is computed."""
        return max(1, prompt - int(prompt * self.prefix_hit))


class Loaded(Protocol):
    """What has a load."""

    @property
    def load(self) -> int:
        """Requests that it has."""
        ...


def two_choices[Choice: Loaded](choices: SequenceOf[Choice], chooser: random.Random) -> Choice:
    """Ray Serve's router: of two replicas drawn at random the one with less to do."""
    if len(choices) == 1:
        return choices[0]
    one, other = chooser.sample(choices, 2)
    return one if one.load <= other.load else other
