"""summary.json says what the report says, and its schema is the committed one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
from stand_in_data import scenario_data

from benchmarks.report import write_report
from benchmarks.run_directory import RunDirectory
from benchmarks.run_summary import schema
from benchmarks.scenario import Scenario
from tools.pictures.simulated_runs import simulated_run

COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / "summary.schema.json"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run whose highest rate does not meet its SLO, with its report."""
    slo = [{"metric": "ttft", "statistic": "p90", "bound": 450, "unit": "ms"}]
    scenario = scenario_data(isl=8192, osl=32, rates=[1, 2, 3], warmup_s=5, window_s=60, min_requests=60, slo=slo)
    started = datetime(2026, 1, 1, tzinfo=UTC)
    made = simulated_run(tmp_path_factory.mktemp("results"), Scenario.model_validate(scenario), "1p1d", started)
    write_report(made)
    return made


def test_the_committed_schema_is_that_of_the_code() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == schema(), "run `make schema`"


def test_a_summary_fits_the_schema_and_a_wrong_one_does_not(run: RunDirectory) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(COMMITTED.read_text(encoding="utf-8")))
    data = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    validator.validate(data)
    for spoilt in ({"schema_version": 2}, {"verdict": {"outcome": "good"}}, {"rates": [{"rate": 1}]}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(data | spoilt)
    del data["verdict"]
    with pytest.raises(jsonschema.ValidationError, match="'verdict' is a required property"):
        validator.validate(data)


def test_it_says_what_the_report_and_the_records_say(run: RunDirectory) -> None:
    data = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    page = run.report.read_text(encoding="utf-8")
    assert data["schema_version"] == 1
    assert (data["stack"], data["run_id"]) == (run.target.stack, run.info.run_id)
    assert data["verdict"]["sentence"] in page
    assert (data["verdict"]["best_rate"], data["verdict"]["lowest_not_met"]) == (2, 3)
    assert data["unfinished"] == []
    assert [rate["rate"] for rate in data["rates"]] == [1, 2, 3]
    for rate in data["rates"]:
        latency = rate["summary"]["ttft"]
        low, high = latency["intervals"]["p90"]
        assert low <= latency["p90"] <= high
        assert low < high
        assert rate["summary"]["itl"]["intervals"] == {}
