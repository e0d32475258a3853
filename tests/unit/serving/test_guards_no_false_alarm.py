"""Configurations that are right: what ships here, what Ray documents, and what others plausibly run."""

from __future__ import annotations

from pathlib import Path

import pytest
from guard_cases import versions_of

from serving.guards.all import GUARDS
from serving.guards.check import check
from serving.guards.of_stack import view_of_stack
from serving.guards.read import read
from serving.stack_files import load_stack, stack_names

PLAUSIBLE = sorted(Path(__file__).with_name("plausible").glob("*.yaml"))


@pytest.mark.parametrize("name", stack_names())
def test_shipped_stacks_have_neither_errors_nor_warnings(name: str) -> None:
    found = check(view_of_stack(load_stack(name), name), GUARDS)
    assert [(f.guard.id, f.place.key, f.detail) for f in found if f.severity != "note"] == []


@pytest.mark.parametrize("path", PLAUSIBLE, ids=lambda path: path.stem)
def test_what_is_right_has_no_error(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = check(read(text, path.name, versions_of(text)), GUARDS)
    assert [(f.guard.id, str(f.place), f.detail) for f in found if f.severity == "error"] == []


def test_there_are_enough_of_them() -> None:
    assert len(PLAUSIBLE) >= 14
