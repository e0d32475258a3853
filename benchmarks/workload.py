"""What a rate sends, request by request, before any text is made: lengths, shared blocks, order, due times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator
from pydantic import BaseModel, ValidationError

from benchmarks import conversations
from benchmarks.errors import BenchmarkError, first_problem
from benchmarks.lengths import draw
from benchmarks.scenario import Scenario
from benchmarks.trace_files import MOONCAKE_BLOCK, Traced

# A prefix hit rate is made of whole blocks; a workload that misses it by more was asked for something impossible.
FARTHEST = 0.02


class Planned(BaseModel):
    """One request. isl, osl: tokens of prompt and answer.

    blocks: an id for each block of the prompt, the last of which may be cut short; equal ids are equal text. shared:
    how many leading tokens an earlier request has too. conversation: which one it belongs to; turn: its place there,
    from 1. at_s: when it is due, seconds after the first, if a trace says so.
    """

    id: str
    isl: int
    osl: int
    blocks: list[int]
    shared: int = 0
    conversation: int | None = None
    turn: int = 1
    at_s: float | None = None


class Workload(BaseModel):
    """All requests of a rate, in order of sending.

    block_size: tokens of a block of `blocks`. unsettled: how many leading requests cannot have the hit rate yet, as
    what they share has not been sent before; the warm-up must be at least as long.
    """

    block_size: int
    unsettled: int
    requests: list[Planned]

    def by_id(self) -> dict[str, Planned]:
        """Each request by its id."""
        return {planned.id: planned for planned in self.requests}

    def hit_rate(self, block_size: int, after: int = 0) -> float:
        """Hit rate of the requests from the `after`th on, in one cache with blocks of `block_size` that loses none."""
        chosen = self.requests[after:]
        found = sum(hit_tokens(planned.shared, planned.isl, block_size) for planned in chosen)
        return found / max(1, sum(planned.isl for planned in chosen))


def hit_tokens(shared: int, isl: int, block_size: int) -> int:
    """How many of `shared` leading tokens of a prompt a cache gives: whole blocks, and never all of the prompt.

    vLLM computes the last token of a prompt in any case, so a hit ends before it (0.18: v1/core/kv_cache_manager.py).
    """
    return min(shared, isl - 1) // block_size * block_size


def build_workload(scenario: Scenario, rate: float, requests: int, seed: int, block_size: int) -> Workload:
    """The requests that a scenario sends at `rate`; `block_size` is that of the server's prefix cache, in tokens.

    The same arguments always give the same. Raises BenchmarkError when the scenario cannot be made of such blocks, or
    its trace cannot be read.
    """
    random = np.random.default_rng(seed)
    if scenario.turns > 1:
        workload = _conversations(scenario, rate, requests, block_size, random)
    elif scenario.trace is not None:
        workload = _traced(scenario, rate, requests, block_size)
    else:
        isl, osl = scenario.lengths
        drawn = zip(draw(isl, requests, random), draw(osl, requests, random), strict=True)
        workload = _shared_prefix(scenario, [Traced(0.0, isl, osl, None) for isl, osl in drawn], block_size)
    sent = SentBefore(workload.block_size)
    for planned in workload.requests:
        planned.shared = sent.add(planned)
    return workload


def _shared_prefix(scenario: Scenario, requests: Sequence[Traced], block_size: int) -> Workload:
    """One prefix for all, like a system prompt: as many blocks of it in each as make the rate right on average."""
    ids = _Ids()
    planned: list[Planned] = []
    due, given = 0.0, 0
    for number, one in enumerate(requests):
        due += one.isl * scenario.prefix_hit_rate
        common = max(0, min(round((due - given) / block_size), (one.isl - 1) // block_size))
        given += common * block_size
        blocks = [ids.of("prefix", index) for index in range(common)]
        blocks += [ids.new() for _ in range(common, _blocks_of(one.isl, block_size))]
        planned.append(Planned(id=_name(number), isl=one.isl, osl=one.osl, blocks=blocks))
    if abs(due - given) > FARTHEST * sum(one.isl for one in requests):
        raise BenchmarkError(
            f"scenario {scenario.name}: prompts this short cannot have {scenario.prefix_hit_rate:.0%} of their tokens "
            f"in whole blocks of {block_size}; change isl or prefix_hit_rate"
        )
    return Workload(block_size=block_size, unsettled=1 if given else 0, requests=planned)


def _conversations(scenario: Scenario, rate: float, requests: int, block_size: int, random: Generator) -> Workload:
    apart = conversations.distance(rate, scenario.longest_answer_s)
    slots = conversations.order(requests, scenario.turns, apart, random)
    isl, osl = scenario.lengths
    many = 1 + max(slot.conversation for slot in slots)
    means, answers = draw(isl, many, random), draw(osl, requests, random)
    ids = _Ids()
    planned: list[Planned] = []
    for number, (slot, answer) in enumerate(zip(slots, answers, strict=True)):
        mean = float(means[slot.conversation])
        try:
            length = conversations.prompt_lengths(mean, scenario.prefix_hit_rate, scenario.turns, block_size)[slot.turn]
        except ValueError as error:
            raise BenchmarkError(f"scenario {scenario.name}: {error}") from None
        blocks = [ids.of(slot.conversation, index) for index in range(_blocks_of(length, block_size))]
        place = {"conversation": slot.conversation, "turn": slot.turn + 1}
        planned.append(Planned(id=_name(number), isl=length, osl=answer, blocks=blocks, **place))
    return Workload(block_size=block_size, unsettled=min(apart, requests), requests=planned)


def _traced(scenario: Scenario, rate: float, requests: int, block_size: int) -> Workload:
    """The trace from its beginning, and again with other content where it is too short."""
    assert scenario.trace is not None  # noqa: S101
    trace = scenario.traced()
    rows = [trace[number % len(trace)] for number in range(requests)]
    if trace[0].blocks is None:
        workload = _shared_prefix(scenario, rows, block_size)
    else:
        ids = _Ids()
        planned: list[Planned] = []
        for number, row in enumerate(rows):
            blocks = [ids.of(number // len(trace), block) for block in row.blocks or ()]
            blocks += [ids.new() for _ in range(len(blocks), _blocks_of(row.isl, MOONCAKE_BLOCK))]
            planned.append(Planned(id=_name(number), isl=row.isl, osl=row.osl, blocks=blocks))
        workload = Workload(block_size=MOONCAKE_BLOCK, unsettled=0, requests=planned)
    if scenario.arrivals == "trace":
        for planned_one, at in zip(workload.requests, _due(trace, rate, requests, scenario.name), strict=True):
            planned_one.at_s = at
    return workload


def _due(trace: Sequence[Traced], rate: float, requests: int, scenario: str) -> Iterable[float]:
    """When each request is due: the recorded spacing, stretched so that the whole trace has `rate` on average."""
    span = trace[-1].at_s
    if span <= 0:
        raise BenchmarkError(f"scenario {scenario}: its trace has no spacing to replay; use arrivals: poisson")
    recorded = (len(trace) - 1) / span
    again = span + 1 / recorded
    for number in range(requests):
        passes, row = divmod(number, len(trace))
        yield (passes * again + trace[row].at_s) * recorded / rate


class SentBefore:
    """What a cache that loses nothing has been sent: of each block, how many of its leading tokens."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._tokens: dict[int, int] = {}

    def add(self, planned: Planned) -> int:
        """Take in a prompt; how many of its leading tokens were there already."""
        shared, going_on = 0, True
        for index, block in enumerate(planned.blocks):
            length = min(self._block_size, planned.isl - index * self._block_size)
            known = self._tokens.get(block, 0)
            if going_on:
                shared += min(length, known)
                going_on = known >= length == self._block_size
            self._tokens[block] = max(length, known)
        return shared


class _Ids:
    """Whole numbers for things: the same for the same thing."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, int], int] = {}
        self._next = 0

    def of(self, thing: object, part: int) -> int:
        key = (thing, part)
        if key not in self._known:
            self._known[key] = self.new()
        return self._known[key]

    def new(self) -> int:
        self._next += 1
        return self._next


def _blocks_of(tokens: int, block_size: int) -> int:
    return -(-tokens // block_size)


def _name(number: int) -> str:
    return f"request-{number:06d}"


def read_workload(path: Path) -> Workload:
    """The plan that lies beside a rate's records. Raises BenchmarkError."""
    try:
        return Workload.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise BenchmarkError(f"{path} is damaged or of another version: {first_problem(error)}") from None
    except OSError as error:
        raise BenchmarkError(f"cannot read {path}: {error.strerror}") from None
