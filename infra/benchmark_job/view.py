"""What a person at a terminal sees while a benchmark runs elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status

# Without a terminal (CI logs) a wait is said again this often.
_AGAIN_S = 30.0


class View:
    """One moving line on a terminal; in a log every line of the benchmark, and a wait when it changes or goes on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._said = ""
        self._said_at = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    @property
    def moving(self) -> bool:
        """Whether lines of the log are only shown in passing."""
        return self._status is not None

    def note(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)

    def log(self, line: str) -> None:
        """A line of the benchmark's own."""
        if self._status is not None:
            self._status.update(escape(line))
        else:
            self.note(line)

    def wait(self, reason: str, seconds: float) -> None:
        """Nothing happens, for this reason, since so many seconds."""
        line = f"{reason} ({seconds:.0f} s)"
        if self._status is not None:
            self._status.update(escape(line))
        elif reason != self._said or time.monotonic() - self._said_at >= _AGAIN_S:
            self._said, self._said_at = reason, time.monotonic()
            self.note(line)
