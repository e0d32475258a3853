"""Configurations with a mistake in them, and without: the files of guard_cases/, one folder a guard.

`bad*.yaml` has the mark `# <- here` on every line at which the guard has to find something, and finds nothing anywhere
else; in `good*.yaml` it finds nothing. `# versions: ray=2.60` on the first line says what runs there. A file whose
name ends in `.stack.yaml` holds settings of a stack of this repository, without the project's name before them, over
those of pd-2p1d; its first line, `# key: engine.all.block_size`, names the keys that have to be blamed, with commas
between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from serving.guards.check import check
from serving.guards.guard import Guard
from serving.guards.of_stack import view_of_stack
from serving.guards.read import read
from serving.guards.view import View
from serving.stack import parse_stack

FOLDER = Path(__file__).with_name("guard_cases")
MARK = "# <- here"
_BASE = {"model": "qwen3-235b-a22b-fp8", "topology": "2p1d", "scenario": "qwen-16k-1k", "cluster": {"provider": "doks"}}


@dataclass(frozen=True)
class Case:
    """A file of a guard's folder. `bad`: whether the guard has to find something."""

    guard: str
    path: Path

    @property
    def bad(self) -> bool:
        return self.path.name.startswith("bad")

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def of_stack(self) -> bool:
        return self.path.name.endswith(".stack.yaml")

    @property
    def expected(self) -> set[str]:
        """Lines with a mark, or keys that are named, as text."""
        if self.of_stack:
            named = _first_line(self.text, "# key:")
            return {f"pd-mi325x:{key.strip()}" for key in named.split(",")} if named else set()
        return {str(number) for number, line in enumerate(self.text.splitlines(), 1) if MARK in line}

    def settings(self) -> dict[str, Any]:
        """Of the stack: pd-2p1d's, and those of the file over them."""
        return {**_BASE, **(yaml.safe_load(self.text) or {})}

    def view(self) -> View:
        if self.of_stack:
            return view_of_stack(parse_stack(self.settings()), "mine")
        return read(self.text, self.path.name, versions_of(self.text))

    def found(self, guards: Iterable[Guard]) -> set[str]:
        """Where the guard finds something, if it is among these."""
        places = [finding.place for finding in check(_view(self), guards) if finding.guard.id == self.guard]
        return {place.key if self.of_stack else str(place.line) for place in places}


@cache
def _view(case: Case) -> View:
    return case.view()


def versions_of(text: str) -> dict[str, str]:
    """What runs there, as the first line of a file says."""
    named = _first_line(text, "# versions:")
    return dict(part.strip().split("=") for part in named.split(",")) if named else {}


def _first_line(text: str, begins: str) -> str:
    first = text.splitlines()[0]
    return first.removeprefix(begins).strip() if first.startswith(begins) else ""


@cache
def cases() -> list[Case]:
    return [Case(path.parent.name, path) for path in sorted(FOLDER.glob("*/*.yaml"))]
