"""Waiting for what controllers do in their own time."""

import time
from collections.abc import Callable


def eventually[T](look: Callable[[], T], what: str, seconds: float = 60) -> T:
    """The first true value of `look`; AssertionError with its last value when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what}: not in {seconds:.0f} s, last seen {seen!r}"
        time.sleep(0.2)
    return seen
