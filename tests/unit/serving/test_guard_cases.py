"""Every guard on configurations with its mistake, and without."""

from __future__ import annotations

import pytest
from guard_cases import Case, cases

from serving.guards.all import GUARDS
from serving.guards.guard import Guard

OF_GUARD: dict[str, list[Case]] = {guard.id: [] for guard in GUARDS}
for one in cases():
    OF_GUARD[one.guard].append(one)


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.guard}-{case.path.name}")
def test_it_finds_what_is_there_and_nothing_else(case: Case) -> None:
    assert case.bad == bool(case.expected), "a bad case marks its lines, a good one has none to mark"
    assert case.found(guard for guard in GUARDS if guard.id == case.guard) == case.expected


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.id)
def test_without_a_guard_its_cases_fail(guard: Guard) -> None:
    """Of all guards that run together each is needed: with it taken out, every bad case of its own fails."""
    others = [other for other in GUARDS if other is not guard]
    own = OF_GUARD[guard.id]
    assert {case.bad for case in own} == {True, False}, "cases of both kinds"
    for case in own:
        if case.bad:
            assert case.found(others) != case.expected, f"{case.path.name} passes without its guard"
