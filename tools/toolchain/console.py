"""Lines a user reads while the toolchain works."""

import time
from pathlib import Path


def say(item: str, message: str) -> None:
    """One line, at once, also when output goes to a file or a pipe."""
    print(f"{item}: {message}", flush=True)


def home_relative(path: Path) -> str:
    """A path as people write it: `~/...` where it lies in the home folder."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
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
