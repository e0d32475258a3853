"""One process measures a run: two would put load on the service at once, and write into the same folders."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.errors import BenchmarkError


@contextmanager
def only_one(run: Path) -> Iterator[None]:
    """Hold a run for as long as the block lasts. Raises BenchmarkError when another process measures it.

    The lock is on its run.json, which is never replaced: no file more, and the kernel gives it back however this
    process ends. AIPerf does not inherit it (files that Python opens are closed in children).
    """
    try:
        with (run / "run.json").open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BenchmarkError(f"{run} is being measured by another process; wait for its end") from None
            yield
    except FileNotFoundError as error:
        if error.filename != str(run / "run.json"):
            raise
        raise BenchmarkError(f"{run} is not a run directory any more (no run.json in it)") from None


def check_free(run: Path) -> None:
    """Raises BenchmarkError when another process measures this run."""
    with only_one(run):
        pass
