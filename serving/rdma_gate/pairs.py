"""Which node reads from which, and what at the same time."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """Two nodes. number: its place in the ring, from 0."""

    number: int
    client: str
    server: str


def rounds(nodes: Sequence[str]) -> list[list[Pair]]:
    """A ring in which each node is client once and server once, in rounds of pairs that have no node in common.

    A pod of the gate holds all GPUs of its node. Two rounds for an even number of nodes, three for an odd one. Raises
    ValueError for fewer than two nodes, or one that is named twice.
    """
    if len(nodes) < 2 or len(set(nodes)) < len(nodes):
        raise ValueError(f"no ring of {', '.join(nodes) or 'no node'}")
    ring = [Pair(number, node, nodes[(number + 1) % len(nodes)]) for number, node in enumerate(nodes)]
    even, odd = ring[0::2], ring[1::2]
    if len(ring) % 2:  # the last and the first pair meet in the first node
        return [even[:-1], odd, even[-1:]]
    return [even, odd]
