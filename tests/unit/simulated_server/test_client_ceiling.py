"""The study of AIPerf's own ceiling: its arithmetic, and its page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.client_ceiling import demand
from tools.study.client_ceiling import DATA, PAGE
from tools.study.client_ceiling_page import ceiling, cpu_per_request, write
from tools.study.client_ceiling_row import Spent, cost, summarize

MS = 1_000_000


def record(number: int, late_ms: int = 1, ttft: float | None = 12.0, error: str | None = None) -> dict[str, Any]:
    """Of a request that was due at `number` hundred milliseconds."""
    due = number * 100 * MS
    about = {"x_request_id": str(number), "credit_issued_ns": due, "request_start_ns": due + late_ms * MS}
    metrics = {"time_to_first_token": {"value": ttft}} if ttft else {}
    return {"metadata": about, "metrics": metrics, "error": {"message": error} if error else None}


def served(number: int) -> dict[str, Any]:
    """What the server saw of it: a first token after 10 ms, 3 ms later than its model says."""
    return {"id": str(number), "arrived_ns": 0, "first_ns": 10 * MS, "late_first_s": 0.003}


def test_a_row_is_what_both_sides_saw() -> None:
    row = summarize(10, [record(n) for n in range(120)], [served(n) for n in range(120)], 4.0, 1.0)
    assert (row.sent, row.requests, row.failed) == (120, 100, 0)  # 2 s of warm-up are left out
    assert row.achieved == pytest.approx(10, abs=0.01)
    assert (row.late_p50, row.late_max) == (1, 1)
    assert (row.added_p50, row.server_late_p90) == (2, 3)
    assert (row.cpu, row.others) == (4, 1)
    assert row.keeps_up


def test_a_client_that_is_late_or_fails_or_sends_too_little_does_not_keep_up() -> None:
    seen = [served(n) for n in range(120)]
    assert not summarize(10, [record(n, late_ms=11) for n in range(120)], seen, 4.0, 1.0).keeps_up
    assert not summarize(10, [record(n, error="no") for n in range(120)], seen, 4.0, 1.0).keeps_up
    assert not summarize(10, [record(n) for n in range(120)], seen[:-1], 4.0, 1.0).keeps_up
    assert not summarize(20, [record(n) for n in range(120)], seen, 4.0, 1.0).keeps_up


def test_the_ceiling_is_between_the_last_that_always_held_and_the_first_that_did_not() -> None:
    def rows(*found: tuple[float, bool]) -> list[dict[str, Any]]:
        return [{"offered": rate, "keeps_up": kept} for rate, kept in found]

    assert ceiling(rows((8, True), (16, True), (32, False), (64, False), (16, True))) == (16, 32)
    assert ceiling(rows((8, True), (16, True), (32, False), (64, False), (16, False))) == (8, 16)
    assert ceiling(rows((8, False), (16, False))) == (None, 8)
    assert ceiling(rows((8, True), (16, False), (32, True))) == (8, 16)
    assert ceiling(rows((8, True), (16, True))) == (16, None)


def test_what_a_request_costs_is_the_slope_while_answers_come_in() -> None:
    progress = [(answers, 15 + 0.004 * answers) for answers in (10, 50, 90, 120)]
    assert cost([*progress, (150, 17.0), (150, 3.0)]) == pytest.approx(4)  # in the end it only writes files
    assert cost(progress[:2]) == 0
    rows = [{"offered": 1, "cpu": 8.0}, {"offered": 3, "cpu": 4.0}, {"offered": 9, "cpu": 0.0}]
    assert cpu_per_request(rows) == 4  # of the highest rate that tells it


def test_what_others_took_is_what_neither_client_nor_server_did() -> None:
    before, after = Spent(wall=100, client=3, server=1, machine=50), Spent(wall=120, client=15, server=3, machine=84)
    assert after.others_since(before) == 1


def test_the_page_is_the_datas() -> None:
    assert PAGE.read_text(encoding="utf-8") == write(json.loads(DATA.read_text(encoding="utf-8")))


def test_the_benchmark_warns_by_what_was_measured() -> None:
    """Its constants give what each measured shape took for a request, within a fifth."""
    for shape in json.loads(DATA.read_text(encoding="utf-8"))["shapes"]:
        measured = cpu_per_request(shape["rows"])
        expected = demand(1, [(shape["isl"], shape["osl"])], workers=1).cpu_ms
        assert expected == pytest.approx(measured, rel=0.2), (
            f"{shape['isl']}/{shape['osl']}: benchmarks/client_ceiling.py"
        )


def test_near_is_half_of_the_workers() -> None:
    few, many = (demand(60, [(8192, 1024), (8192, 0)], workers) for workers in (1, 8))
    assert few.cores == many.cores > 0.5
    assert few.near
    assert not many.near
