"""docs/reference/guards.md is what the guards say of themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from serving.guards.all import GUARDS
from serving.guards.guard import Guard
from serving.guards.page import text

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "guards.md"


def test_the_page_is_the_guards() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(GUARDS), "`python -m serving guards > docs/reference/guards.md`"


def test_guards_that_the_how_to_waives_are_there() -> None:
    how_to = (PAGE.parents[1] / "howto" / "check-a-configuration.md").read_text(encoding="utf-8")
    waived = re.findall(r'(?:--waive "|:waive:\n +)([a-z-]+)', how_to)
    assert len(waived) == 2
    assert set(waived) <= {guard.id for guard in GUARDS}


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.id)
def test_a_guard_says_everything(guard: Guard) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", guard.id)
    for words in (guard.what, guard.silently, guard.fix, guard.source):
        assert words.strip() == words != ""
        assert "\n" not in words
    for component, specifier in guard.holds.items():
        assert component in ("ray", "vllm", "ucx", "nixl", "rixl")
        assert str(SpecifierSet(specifier))
