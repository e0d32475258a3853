"""From an engine to the client: at once, or as a service does it whose way out is worse than its engines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tools.simulated_server.clock import Clock


class Stream(Protocol):
    """Who waits for an answer token by token. `when` is the model's time."""

    def token(self, when: float, last: bool) -> None:
        """One token has come, the last one with `last`."""
        ...

    def lost(self, when: float, reason: str) -> None:
        """No more will come."""
        ...


@dataclass(frozen=True)
class Terms:
    """burst: tokens that are held back until there are so many (or the answer ends); 1: none are.

    tokens_per_s: how many tokens of the model's second one replica gets out, over all its answers; 0: any number. Its
    engine does not wait for them, so it may be idle while they are still on their way.
    """

    burst: int = 1
    tokens_per_s: float = 0.0


class Delivery:
    """The way out of one replica."""

    def __init__(self, clock: Clock, terms: Terms) -> None:
        self._clock, self._burst = clock, terms.burst
        self._spacing = 1 / terms.tokens_per_s if terms.tokens_per_s else 0.0
        self._free = 0.0
        self._held: dict[int, int] = {}

    def send(self, request: int, when: float, last: bool, stream: Stream) -> None:
        """One token of a request; its stream gets it now or later."""
        count = self._held.pop(request, 0) + 1
        if count < self._burst and not last:
            self._held[request] = count
            return
        for number in range(1, count + 1):
            self._pass_on(when, last and number == count, stream)

    def forget(self, request: int) -> None:
        """A request that was given up."""
        self._held.pop(request, None)

    def _pass_on(self, when: float, last: bool, stream: Stream) -> None:
        if not self._spacing:
            stream.token(when, last)
            return
        self._free = max(self._free, when) + self._spacing
        self._clock.at(self._free, partial(stream.token, last=last))
