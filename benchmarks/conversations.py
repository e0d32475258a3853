"""Multi-turn load: how long the prompts of a conversation are, and in which order those of many are sent.

A conversation is sent as requests of their own. Each prompt repeats the prompt before it and goes on with a scripted
answer and new text of the user. Turns are far enough apart in the order of sending that the earlier one has been
answered, and the prefix cache has it, before the next is due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator  # every preview reads scenarios, and none draws anything

# Between two turns lie this many times the longest end-to-end latency that the SLO allows ...
APART = 3
# ... and at least this many other requests, so that Poisson arrivals seldom bring them together at low rates.
FEWEST_BETWEEN = 8


@dataclass(frozen=True)
class Slot:
    """What is sent at one position: which conversation, and which of its turns, counted from 0."""

    conversation: int
    turn: int


def check_turns(turns: int, hit_rate: float, isl: float, osl: float) -> None:
    """Raises ValueError when conversations with such means cannot be made.

    All tokens but those of the last prompt are sent again. If no turn had anything new, all prompts were as long, and
    the hit rate 1 − 1/turns; if the first had no tokens, the last was twice the mean, and the hit rate 1 − 2/turns.
    """
    low, high = 1 - 2 / turns, 1 - 1 / turns
    if not low < hit_rate < high:
        raise ValueError(
            f"prefix_hit_rate: conversations of {turns} turns repeat between {low:.0%} and {high:.0%} of their prompts"
            "; change turns or prefix_hit_rate"
        )
    step = _growth(isl, hit_rate, turns)
    if step <= osl:
        raise ValueError(
            f"osl: prompts grow by {step:.0f} tokens a turn, which leaves no room for an answer of {osl:.0f}; "
            "raise isl, or lower prefix_hit_rate or osl"
        )


def check_spacing(longest_s: float, warmup_s: float) -> None:
    """Raises ValueError when turns cannot be kept apart. longest_s: how long an answer may take, 0 if unknown."""
    if longest_s == 0:
        raise ValueError("slo: turns need a bound on TPOT or E2E, which says when an answer is there at the latest")
    if warmup_s < APART * longest_s:
        raise ValueError(
            f"warmup_s: at least {APART * longest_s:.0f}, the time between two turns, after which every prompt finds "
            "the one before it in the cache"
        )


def _growth(mean: float, hit_rate: float, turns: int) -> float:
    """Tokens that a prompt has more than the one before, blocks of the cache left aside."""
    last = (1 - hit_rate) * turns * mean  # what is not sent again is the last prompt
    return 2 * (last - mean) / (turns - 1)


@lru_cache(maxsize=100_000)
def prompt_lengths(mean: float, hit_rate: float, turns: int, block_size: int) -> tuple[int, ...]:
    """The prompt lengths of a conversation: `mean` tokens on average, of which `hit_rate` are whole blocks sent before.

    Blocks make hits a little fewer than tokens that are sent again; the growth is made smaller until the rate is right
    again, as closely as one block a conversation. Raises ValueError when blocks are too large for such prompts.
    """
    steepest = 2 * (mean - 1) / (turns - 1)
    low, high = 0.0, min(_growth(mean, hit_rate, turns), steepest)
    best = _grown(mean, high, turns)
    for _ in range(30):
        middle = (low + high) / 2
        lengths = _grown(mean, middle, turns)
        if abs(_rate(lengths, block_size) - hit_rate) < abs(_rate(best, block_size) - hit_rate):
            best = lengths
        low, high = (middle, high) if _rate(lengths, block_size) > hit_rate else (low, middle)
    if abs(_rate(best, block_size) - hit_rate) * sum(best) > 2 * block_size:
        raise ValueError(
            f"prompts of about {mean:.0f} tokens in {turns} turns cannot have {hit_rate:.0%} in blocks of {block_size}"
        )
    return best


def _grown(mean: float, step: float, turns: int) -> tuple[int, ...]:
    first = mean - step * (turns - 1) / 2
    return tuple(max(1, round(first + step * turn)) for turn in range(turns))


def _rate(lengths: tuple[int, ...], block_size: int) -> float:
    hits = sum(min(length // block_size, (after - 1) // block_size) for length, after in pairwise(lengths))
    return hits * block_size / sum(lengths)


def distance(rate: float, longest_s: float) -> int:
    """How many positions apart the turns of a conversation are sent at `rate`; `longest_s` is the latency allowed."""
    return max(FEWEST_BETWEEN, math.ceil(rate * APART * longest_s))


def order(requests: int, turns: int, apart: int, random: Generator) -> list[Slot]:
    """What is sent at each position.

    Every `apart`-th position belongs to the same row of conversations, one after another. Rows begin in the middle of a
    conversation as often as at its first turn: from the first request on, all turns are equally frequent, so that the
    load does not change while it runs. The first `apart` requests find nothing of theirs in the cache.
    """
    # Each few rows have all turns among them, in random order: the mix is the same in every part of a window.
    begin = [int(turn) for _ in range(-(-apart // turns)) for turn in random.permutation(turns)]
    slots: list[Slot] = []
    for position in range(requests):
        round_, row = divmod(position, apart)
        reached = begin[row] + round_
        slots.append(Slot(conversation=reached // turns * apart + row, turn=reached % turns))
    return slots
