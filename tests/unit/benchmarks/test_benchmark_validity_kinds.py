"""Each kind of finding: absent from a clean run, there in one that is wrong, and described in the docs."""

from __future__ import annotations

import os
from typing import Any

import pytest
import validity_table
from provoked import COMPARISON, RATE, RUN, Provoked, pair, run
from simulated_runs import clean

from benchmarks.validity import KINDS, check_comparison, check_rate, check_run

PROVOKED = RATE | RUN | COMPARISON
CLEAN = {**dict.fromkeys(RATE, clean), **dict.fromkeys(RUN, run), **dict.fromkeys(COMPARISON, pair)}


def test_every_kind_is_provoked_and_explained() -> None:
    assert PROVOKED.keys() == KINDS.keys()
    assert all(len(kind.meaning) > 15 for kind in KINDS.values())


@pytest.mark.parametrize(("name", "case"), PROVOKED.items(), ids=list(PROVOKED))
def test_a_kind_is_found_where_it_is_and_nowhere_else(name: str, case: Provoked) -> None:
    found = KINDS[name](case.subject())
    assert found is not None
    assert (found.id, found.outcome) == (name, case.outcome), found.sentence
    subject: Any = CLEAN[name]()
    counterpart = KINDS[name](subject)
    if case.unseen:
        assert counterpart is None
    else:
        assert counterpart is not None
        assert counterpart.outcome == "ok", counterpart.sentence


def test_a_clean_run_and_comparison_have_nothing_but_ok() -> None:
    seen = run()
    findings = [
        *check_rate(clean()),
        *check_run(seen.target, seen.scenario, seen.priming, seen.image),
        *check_comparison(pair()),
    ]
    assert [f"{found.id}: {found.sentence}" for found in findings if found.outcome != "ok"] == []
    assert {found.id for found in findings} == {name for name, case in PROVOKED.items() if not case.unseen}


def test_findings_survive_json() -> None:
    for case in RATE.values():
        for found in check_rate(case.subject()):
            assert type(found).model_validate_json(found.model_dump_json()) == found


def test_the_page_says_what_was_seen() -> None:
    page = validity_table.render()
    if os.environ.get(validity_table.UPDATE):
        validity_table.PLACE.write_text(page, encoding="utf-8")
    assert validity_table.PLACE.read_text(encoding="utf-8") == page, f"{validity_table.UPDATE}=1 writes it anew"
