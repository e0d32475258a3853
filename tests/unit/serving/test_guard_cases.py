"""Every guard on configurations with its mistake, and without."""

from __future__ import annotations

import pytest
from guard_cases import Case, cases

from serving.guards.all import GUARDS

BY_ID = {guard.id: guard for guard in GUARDS}


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.guard}-{case.path.name}")
def test_it_finds_what_is_there_and_nothing_else(case: Case) -> None:
    assert case.bad == bool(case.expected), "a bad case marks its lines, a good one has none to mark"
    assert case.found(BY_ID[case.guard]) == case.expected


@pytest.mark.parametrize("name", BY_ID)
def test_a_guard_that_is_missing_is_missed(name: str) -> None:
    """It has cases of both kinds, and finds something in each bad one: without it that would not be found."""
    own = [case for case in cases() if case.guard == name]
    assert any(case.bad for case in own)
    assert any(not case.bad for case in own)
    for case in own:
        if case.bad:
            assert case.found(BY_ID[name]) != set()
