"""A deployment: replicas, the router before them, and the way of KV from prefill to decode. On any clock.

A request goes to a replica (aggregated), or to a prefill replica, whose engine computes the prompt; then to a decode
replica, which reads the KV that its own cache lacks, computes the prompt's last token again, as vLLM does, and writes
the answer. Both replicas are drawn as Ray Serve draws them, each when it is needed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from serving.kv_bytes import kv_bytes_moved
from tools.simulated_server.clock import Clock
from tools.simulated_server.delivery import Delivery, Stream, Terms
from tools.simulated_server.model import Arrangement, Engine, Sequence, two_choices
from tools.simulated_server.prefix_cache import Blocks, PrefixCache
from tools.simulated_server.replica import Replica, Role, new_name

# What becomes of a prompt's KV on its way to decode. `moved`, as it should; `not moved`: decode is not told of it and
# computes the prompt; `recomputed`: it arrives, and decode computes the prompt all the same; `failed`: the read fails,
# and decode computes the prompt; `expired`: it arrives, but prefill has given the blocks away before it heard so.
KvFate = Literal["moved", "not moved", "recomputed", "failed", "expired"]

# The node of all decode engines: where the server answers, and so its stand-in of a node-exporter is asked.
_EXPORTER = "127.0.0.1"


@dataclass(frozen=True)
class Work:
    """A request, in tokens. blocks: of its prompt, for the prefix cache; later: of its prompt and its answer."""

    prompt: int
    answer: int
    blocks: Blocks = ()
    later: Blocks = ()
    kv: KvFate = "moved"


@dataclass
class Answer:
    """Times of a request in seconds of the clock, as the engines know them. tokens: of an answer that has ended."""

    at: float
    first: float = 0.0
    end: float = 0.0
    tokens: int = 0


@dataclass(frozen=True)
class Falsified:
    """What is wrong with the replicas. warmer, colder: shares, see PrefixCache; pace: what a step's seconds are
    multiplied by at a moment of the clock.
    """

    warmer: float = 0.0
    colder: float = 0.0
    pace: Callable[[float], float] | None = None
    terms: Terms = field(default_factory=Terms)


@dataclass
class _Request:
    work: Work
    answer: Answer
    stream: Stream | None
    replica: Replica


class Deployment:
    """The replicas of an arrangement at work. Everything random follows from `seed`."""

    def __init__(self, arrangement: Arrangement, seed: int, clock: Clock, falsified: Falsified | None = None) -> None:
        self._arrangement, self._clock = arrangement, clock
        self._falsified = falsified or Falsified()
        self._seeds = itertools.count(seed * 1000)
        self._names = random.Random(f"names {seed}")
        self._chooser = random.Random(seed)
        self._ids = itertools.count(1)
        self._requests: dict[int, _Request] = {}
        role: Role = "decode" if arrangement.disaggregated else "aggregated"
        self._prefill = [self._start("prefill", f"10.0.0.{number + 1}") for number in range(arrangement.prefill)]
        self._decode = [self._start(role, _EXPORTER) for _ in range(arrangement.decode)]

    @property
    def replicas(self) -> list[Replica]:
        """All of them, prefill first."""
        return [*self._prefill, *self._decode]

    def submit(self, work: Work, stream: Stream | None = None) -> tuple[int, Answer]:
        """Take a request in now: its id, and its times, which fill while it is answered. `stream` gets each token."""
        number, now = next(self._ids), self._clock.now()
        entry = two_choices(self._prefill or self._decode, self._chooser)
        request = _Request(work, Answer(now), stream, entry)
        self._requests[number] = request
        written = 1 if self._prefill else work.answer
        if stream and not self._prefill:
            entry.streams[number] = stream
        self._give(now, entry, Sequence(number, self._arrangement.computed(work.prompt), written, work.blocks))
        return number, request.answer

    def abort(self, number: int) -> None:
        """Give up a request whose client is gone; nothing happens where it has ended."""
        request = self._requests.pop(number, None)
        if request:
            request.replica.engine.remove(number)
            request.replica.delivery.forget(number)
            request.replica.streams.pop(number, None)

    def restart(self, place: int) -> None:
        """Start a replica (its place in `replicas`) anew: other id, empty cache, counters at 0, its requests lost."""
        old = self.replicas[place]
        old.gone = True
        group, index = (self._prefill, place) if old.role == "prefill" else (self._decode, place - len(self._prefill))
        group[index] = self._start(old.role, old.node)
        for number, request in [*self._requests.items()]:
            if request.replica is old:
                del self._requests[number]
                if request.stream:
                    request.stream.lost(self._clock.now(), "the replica died")

    def _start(self, role: Role, node: str) -> Replica:
        arrangement, wrong = self._arrangement, self._falsified
        cache = None
        if arrangement.cache_tokens:
            cache = PrefixCache(arrangement.cache_tokens, arrangement.block_size, wrong.warmer, wrong.colder)
        engine = Engine(arrangement.speed, next(self._seeds), cache)
        return Replica(role, new_name(self._names), node, engine, Delivery(self._clock, wrong.terms), cache)

    def _give(self, now: float, replica: Replica, sequence: Sequence) -> None:
        replica.engine.add(sequence)
        if replica.step is None:
            self._begin(now, replica)

    def _begin(self, now: float, replica: Replica) -> None:
        replica.step = step = replica.engine.step()
        if step:
            pace = self._falsified.pace
            seconds = step.seconds * pace(now) if pace else step.seconds
            self._clock.at(now + seconds, partial(self._ended, replica=replica))

    def _ended(self, now: float, replica: Replica) -> None:
        """A step has ended."""
        step = replica.step
        if step is None or replica.gone:
            return
        for sequence in step.prefilled:
            self._prefilled(now, replica, sequence)
        replica.counted.generation_tokens += len(step.tokens)
        replica.counted.requests += len(step.ended)
        if replica.role == "prefill":
            for number in step.ended:
                self._hand_over(now, replica, number)
        elif step.ended or replica.streams:
            self._deliver(now, replica, step.tokens, step.ended)
        self._begin(now, replica)

    def _prefilled(self, now: float, replica: Replica, sequence: Sequence) -> None:
        request = self._requests.get(sequence.id)
        if request is None:
            return
        prompt, hit = request.work.prompt, sequence.hit or 0
        if replica.role == "decode":
            # Of what came from prefill or its own cache only the last token was computed here.
            replica.counted.prompt(prompt, _received(request.work, hit))
        else:
            cached = prompt - self._arrangement.computed(prompt) + hit
            replica.counted.prompt(prompt, cached)
            replica.counted.external_queries += prompt - cached if self._prefill else 0
            if replica.cache:
                replica.counted.looked_up(prompt, hit)
        if replica.role != "prefill":
            request.answer.first = now

    def _deliver(self, now: float, replica: Replica, tokens: SequenceOf[int], ended: SequenceOf[int]) -> None:
        for number in ended:
            request = self._requests.get(number)
            if request:
                request.answer.end, request.answer.tokens = now, request.work.answer
                if replica.cache:
                    replica.cache.keep(request.work.later)
        if replica.streams:
            last = {*ended}
            for number in tokens:
                stream = replica.streams.get(number)
                if stream and number in self._requests:
                    replica.delivery.send(number, now, number in last, stream)
        for number in ended:
            self._requests.pop(number, None)
            replica.streams.pop(number, None)

    def _hand_over(self, now: float, prefill: Replica, number: int) -> None:
        """A prompt is computed: a decode replica reads its KV, as far as its own cache lacks it."""
        request = self._requests.get(number)
        if request is None:
            return
        work = request.work
        request.replica = decode = two_choices(self._decode, self._chooser)
        if request.stream:
            decode.streams[number] = request.stream
        hit = decode.cache.hit(work.blocks, work.prompt) if decode.cache else 0
        if decode.cache:
            decode.counted.looked_up(work.prompt, hit)
        decode.counted.external_queries += work.prompt - hit
        if work.kv == "expired":
            prefill.counted.expired += 1
        decode.pulling += 1
        wait = 0.0
        if work.kv != "not moved":
            decode.counted.external_hits += work.prompt - hit
            wait = self._arrangement.transfer_latency + self._arrangement.transfer_seconds * (work.prompt - hit)
        arrive = partial(self._arrived, number=number, decode=decode, hit=hit, wait=wait)
        self._clock.at(now + wait, arrive)

    def _arrived(self, now: float, number: int, decode: Replica, hit: int, wait: float) -> None:
        """The KV of a prompt has reached decode, or will not."""
        decode.pulling -= 1
        request = self._requests.get(number)
        if request is None or decode.gone:
            return
        work, arrangement = request.work, self._arrangement
        if work.kv == "failed":
            decode.counted.failed_transfers += 1
        elif work.kv != "not moved":
            size = (
                kv_bytes_moved(work.prompt, arrangement.block_size, arrangement.kv_bytes) - hit * arrangement.kv_bytes
            )
            blocks = -(-(work.prompt - hit) // arrangement.block_size)
            decode.counted.received(blocks, size, arrangement.transfer_latency, wait)
        computed = work.prompt - _received(work, hit)
        # `hit` is given: the cache has been asked, and is not to be again.
        self._give(now, decode, Sequence(number, computed, work.answer, work.blocks, hit))


def _received(work: Work, hit: int) -> int:
    """Prompt tokens that decode does not compute, `hit` of which were in its own cache: all but the last one."""
    return work.prompt - 1 if work.kv in ("moved", "expired") else hit
