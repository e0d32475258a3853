"""A prefix cache in blocks of tokens, as vLLM has one: whole blocks from the start, least recently used go first."""

from __future__ import annotations

from collections import OrderedDict

# One number for each whole block, which stands for it and everything before it.
Blocks = tuple[int, ...]


def blocks_of(text: bytes, block_bytes: int) -> Blocks:
    """The whole blocks of a text. Equal only within one process: Python's hash of bytes is salted."""
    blocks: list[int] = []
    before = 0
    for start in range(0, len(text) - block_bytes + 1, block_bytes):
        before = hash((before, text[start : start + block_bytes]))
        blocks.append(before)
    return tuple(blocks)


class PrefixCache:
    """Of one engine. `capacity` and `block_size` are in tokens; `warmer` and `colder` are shares that falsify it.

    warmer: share of every prompt that is taken for cached though it never was here; colder: share of the blocks found
    that are not used.
    """

    def __init__(self, capacity: int, block_size: int, warmer: float = 0.0, colder: float = 0.0) -> None:
        self._capacity = capacity // block_size
        self._block_size = block_size
        self._warmer, self._colder = warmer, colder
        self._kept: OrderedDict[int, None] = OrderedDict()

    def hit(self, blocks: Blocks, prompt: int) -> int:
        """How many of a prompt's tokens are cached: whole blocks, and never the last token."""
        most = min(len(blocks), (prompt - 1) // self._block_size)
        found = 0
        while found < most and blocks[found] in self._kept:
            found += 1
        self._touch(blocks[:found])
        if self._colder:
            found = int(found * (1 - self._colder))
        if self._warmer:
            found = max(found, min(most, int(self._warmer * prompt / self._block_size)))
        return found * self._block_size

    def keep(self, blocks: Blocks) -> None:
        """Remember the blocks of what has been computed."""
        self._touch(blocks)
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)

    def _touch(self, blocks: Blocks) -> None:
        # From the end, so that a text's last block is the first to go: without its first one the others are worthless.
        for block in reversed(blocks):
            self._kept[block] = None
            self._kept.move_to_end(block)
