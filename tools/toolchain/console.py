"""Lines a user reads while the toolchain works."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def say(item: str, message: str) -> None:
    """One line, at once, also when output goes to a file or a pipe."""
    print(f"{item}: {message}", flush=True)


def home_relative(path: Path) -> str:
    """A path as people write it: `~/...` where it lies in the home folder."""
    for home in (Path.home(), Path.home().resolve()):
        if path.is_relative_to(home):
            return f"~/{path.relative_to(home)}"
    return str(path)


def duration(seconds: float) -> str:
    """`0.4 s`, `72 s`, `5 min 24 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Elapsed wall clock in seconds."""
        return time.monotonic() - self._start

    def __str__(self) -> str:
        return duration(self.seconds)


class Stages:
    """The parts of a long run: each is announced when it begins and timed."""

    def __init__(self, item: str) -> None:
        self._item = item
        self._taken: list[tuple[str, float]] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """One part; it counts when it ends well."""
        watch = Stopwatch()
        say(self._item, f"--- {name}")
        yield
        self._taken.append((name, watch.seconds))

    def print_times(self) -> None:
        """One line for each part, and one for all."""
        for name, seconds in [*self._taken, ("in all", sum(seconds for _, seconds in self._taken))]:
            print(f"{name:50} {duration(seconds):>12}")
