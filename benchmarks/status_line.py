"""The moving line that a person at a terminal sees while something goes on."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status


class StatusLine:
    """One moving line on a terminal, while the context lasts; in a log there is none, and `moving` is false."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

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
        """Whether what is shown goes away again."""
        return self._status is not None

    def show(self, text: str) -> None:
        """Put this text into the moving line."""
        if self._status is not None:
            self._status.update(escape(text))
