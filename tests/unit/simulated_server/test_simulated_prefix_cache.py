"""The prefix cache in blocks."""

from __future__ import annotations

import pytest

from tools.simulated_server.model import Arrangement, Speed
from tools.simulated_server.prefix_cache import PrefixCache, blocks_of
from tools.simulated_server.virtual import Arrival, play

BLOCK = 4


def cache_of(text: bytes, capacity: int = 100, **wrong: float) -> PrefixCache:
    cache = PrefixCache(capacity, BLOCK, **wrong)
    cache.keep(blocks_of(text, BLOCK))
    return cache


@pytest.mark.parametrize(
    ("asked", "hit"),
    [
        (b"abcdefghijkl", 8),  # all three blocks are there, but the last token is computed always
        (b"abcdefghijklm", 12),
        (b"abcdefghiXkl", 8),
        (b"abcXefghijkl", 0),  # what follows another beginning is another block
        (b"abc", 0),
    ],
)
def test_whole_blocks_from_the_start_are_hit(asked: bytes, hit: int) -> None:
    assert cache_of(b"abcdefghijkl").hit(blocks_of(asked, BLOCK), len(asked)) == hit


def test_the_least_recently_used_go_first_and_the_end_of_a_text_before_its_beginning() -> None:
    cache = cache_of(b"aaaabbbbcccc", capacity=16)
    cache.keep(blocks_of(b"ddddeeee", BLOCK))  # five blocks for four places
    assert cache.hit(blocks_of(b"aaaabbbbcccc.", BLOCK), 13) == 8
    assert cache.hit(blocks_of(b"ddddeeee.", BLOCK), 9) == 8


def test_a_falsified_cache_is_warmer_or_colder() -> None:
    text = b"abcdefghijklmnopqrst"
    other = blocks_of(b"0123456789012345678.", BLOCK)
    assert cache_of(text, warmer=0.5).hit(other, 20) == 8
    assert cache_of(text, colder=0.5).hit(blocks_of(text + b".", BLOCK), 21) == 8


def test_on_the_virtual_clock_blocks_of_an_earlier_prompt_are_not_computed_again() -> None:
    speed = Speed(base=0.01, per_sequence=0.0, per_prompt_token=0.001)
    arrangement = Arrangement(speed, decode=1, block_size=10, cache_tokens=1000)
    first, second = play(arrangement, [Arrival(0.0, 40, 1, (1, 2, 3, 4)), Arrival(1.0, 40, 1, (1, 2, 8, 9))], 0)
    assert first.first == pytest.approx(0.05)
    assert second.first - 1.0 == pytest.approx(0.03)
