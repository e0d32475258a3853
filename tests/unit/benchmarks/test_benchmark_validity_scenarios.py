"""Clean runs of the scenarios that ship, simulated: no check finds fault with them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.scenario_files import load_scenarios
from tools.pictures.simulated_runs import simulated_run

SEARCHED = [name for name, scenario in load_scenarios().items() if scenario.search]


@pytest.mark.parametrize("topology", ["agg-3", "2p1d"])
@pytest.mark.parametrize("name", SEARCHED)
def test_a_clean_run_has_no_fault(tmp_path: Path, name: str, topology: str) -> None:
    """At two rates that the simulated engines carry; their windows are as long as the scenario says in seconds."""
    shipped = load_scenarios()[name]
    assert shipped.search is not None
    rates = [shipped.search.lowest, 1.5 * shipped.search.lowest]
    shorter = {"search": None, "rates": rates, "min_requests": 300, "turns": 1}
    run = simulated_run(tmp_path, shipped.model_copy(update=shorter), topology, datetime(2026, 1, 1, tzinfo=UTC))
    faults = [
        (result.rate, f.id, f.sentence) for result in run.results() for f in result.findings if f.outcome == "fault"
    ]
    assert faults == []
    assert len(run.results()) == 2
