"""What a person at a terminal sees while a benchmark runs elsewhere."""

import time

from rich.console import Console

from benchmarks.status_line import StatusLine

# Without a terminal (CI logs) a wait is said again this often.
_AGAIN_S = 30.0


class View(StatusLine):
    """One moving line on a terminal; in a log every line of the benchmark, and a wait when it changes or goes on."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._said = ""
        self._said_at = 0.0

    def note(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)

    def log(self, line: str) -> None:
        """A line of the benchmark's own."""
        if self.moving:
            self.show(line)
        else:
            self.note(line)

    def wait(self, reason: str, seconds: float) -> None:
        """Nothing happens, for this reason, since so many seconds."""
        line = f"{reason} ({seconds:.0f} s)"
        if self.moving:
            self.show(line)
        elif reason != self._said or time.monotonic() - self._said_at >= _AGAIN_S:
            self._said, self._said_at = reason, time.monotonic()
            self.note(line)
