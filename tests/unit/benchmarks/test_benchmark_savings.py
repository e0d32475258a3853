"""docs/explanation/savings.md: every number of its table, recomputed from the capacities in the post's artifacts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cost import nodes_for, saving, sets_for

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "savings.md"
# anyscale/pd-amd-blogpost, draft/blogpost_draft.md at 46e01227: req/s under mean TPOT < 30 ms, sets of two nodes.
PD, AGGREGATED = 7.0, 3.0
NODES = 2
HOURS = 24


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]} req/s")
def test_the_page_is_what_the_arithmetic_gives(row: list[str]) -> None:
    load = float(row[0])
    pd, aggregated = nodes_for(load, PD, NODES), nodes_for(load, AGGREGATED, NODES)
    saved = saving(aggregated, pd)
    assert row[1:] == [
        str(sets_for(load, PD).whole),
        str(sets_for(load, AGGREGATED).whole),
        str(pd.whole * HOURS),
        str(aggregated.whole * HOURS),
        f"{saved.whole:.0%}".replace("%", " %"),
        f"{saved.exact:.0%}".replace("%", " %"),
    ]


def test_the_posts_own_numbers_are_in_it() -> None:
    """Node-hours a day and savings as the draft has them, for 3, 5 and 7 req/s."""
    by_load = {row[0]: row for row in rows()}
    assert by_load["3"][3:6] == ["48", "48", "0 %"]
    assert by_load["5"][3:6] == ["48", "96", "50 %"]
    assert by_load["7"][3:6] == ["48", "144", "67 %"]


@pytest.mark.parametrize(("first_half", "node_hours", "saved"), [(6.99, 72, 0.25), (7.0, 48, 0.50)])
def test_the_earlier_write_up_hangs_on_a_decimal(first_half: float, node_hours: int, saved: float) -> None:
    """results/deepseek_v3/summary.md at 2952cf83: half a day at each hit rate, 7 req/s, 72 node-hours against 96."""
    half = HOURS / 2

    def day(*rates: float) -> float:
        return sum(nodes_for(7, rate, NODES).whole * half for rate in rates)

    pd, aggregated = day(first_half, 7.1), day(3.7, 4.9)
    assert (pd, aggregated) == (node_hours, 96)
    assert 1 - pd / aggregated == pytest.approx(saved)
