"""Between the clock's calls and the coroutine that writes to a client."""

from __future__ import annotations

import asyncio


class LostError(Exception):
    """No more tokens will come; says why."""


class TokenStream:
    """Collects tokens of one answer until they are fetched."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ready = 0
        self._ended = False
        self._reason = ""
        self._waiter: asyncio.Future[None] | None = None
        self.first: float | None = None  # the model's time of the first token

    def token(self, when: float, last: bool) -> None:
        """One more, the last one with `last`."""
        self._ready += 1
        self._ended = last
        if self.first is None:
            self.first = when
        self._wake()

    def lost(self, when: float, reason: str) -> None:
        """No more will come, at model time `when`."""
        self._reason = reason
        self._wake()

    async def fetch(self) -> tuple[int, bool]:
        """How many tokens have come since the last call, at least 1, and whether that was all. Raises LostError."""
        while not self._ready:
            if self._reason:
                raise LostError(self._reason)
            self._waiter = self._loop.create_future()
            await self._waiter
        ready, self._ready = self._ready, 0
        return ready, self._ended

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)
