"""Values of a configuration that know where they stand in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """Where a value stands. `key` is its path in words; `line` and `column` count from 1, where there is a file."""

    file: str
    key: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.key}" if self.line else f"{self.file}: {self.key}"


class Origin(Protocol):
    """What was read: knows the place of every path in it, also of one that is not there (then its parent's)."""

    def place(self, path: Path) -> Place: ...


@dataclass(frozen=True)
class Located:
    """A value, as YAML gave it, at `path` in what was read."""

    value: Any
    path: Path
    origin: Origin

    def at(self, *keys: str | int) -> Located | None:
        """What stands below, or None where nothing does; of a list by position."""
        found: Any = self.value
        for key in keys:
            if isinstance(found, list):
                found = dict(enumerate(found))
            if not isinstance(found, dict) or key not in found:
                return None
            found = found[key]
        return Located(found, (*self.path, *keys), self.origin)

    def items(self) -> Iterator[tuple[str, Located]]:
        """Keys and values of an object; nothing of anything else."""
        if isinstance(self.value, dict):
            for key in self.value:
                yield str(key), Located(self.value[key], (*self.path, key), self.origin)

    def entries(self) -> Iterator[Located]:
        """The entries of a list; nothing of anything else."""
        if isinstance(self.value, list):
            for number, value in enumerate(self.value):
                yield Located(value, (*self.path, number), self.origin)

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    @property
    def text(self) -> str | None:
        return self.value if isinstance(self.value, str) else None

    @property
    def number(self) -> float | None:
        """A finite number, or a text that is one; no truth value."""
        if isinstance(self.value, bool):
            return None
        try:
            found = float(self.value) if isinstance(self.value, int | float | str) else None
        except (ValueError, OverflowError):
            return None
        return found if found is not None and math.isfinite(found) else None

    @property
    def integer(self) -> int | None:
        number = self.number
        return int(number) if number is not None and number.is_integer() else None

    @property
    def place(self) -> Place:
        return self.origin.place(self.path)


def in_words(path: Path) -> str:
    """`applications[0].args.prefill_config`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(the whole document)"
