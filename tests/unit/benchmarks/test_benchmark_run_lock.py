"""A run belongs to the process that measures it, and holds each rate once."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from stand_in_data import request, scenario_data, target_data

from benchmarks import run as runner
from benchmarks.errors import BenchmarkError
from benchmarks.evidence import KvProof
from benchmarks.run_directory import RateResult, RunDirectory, RunInfo, create
from benchmarks.run_lock import check_free, only_one
from benchmarks.scenario import Scenario
from benchmarks.summary import summarize
from benchmarks.target import Target


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run of two rates of which one is finished."""
    scenario = Scenario.model_validate(scenario_data(rates=[10, 12]))
    info = RunInfo(run_id="1", started=datetime.now(UTC), argv=[], tools={})
    made = create(tmp_path, info, Target.model_validate(target_data("http://127.0.0.1:9")), scenario)
    made.start_rate(10)
    summary = summarize(scenario, 10, [request(number) for number in range(31)])
    proof = KvProof(verdict="not applicable", reasons=[], requests=31)
    made.finish_rate(RateResult(rate=10, seed=1, summary=summary, kv=proof, findings=[]))
    return made


def test_a_run_that_another_process_measures_is_refused(run: RunDirectory) -> None:
    with only_one(run.path):
        for attempt in (lambda: check_free(run.path), lambda: runner.execute(run, "aiperf", print)):
            with pytest.raises(BenchmarkError, match="is being measured by another process"):
                attempt()
    check_free(run.path)


def test_what_was_cut_off_is_no_second_result(run: RunDirectory) -> None:
    """Not even with a summary: two processes on one run left such folders."""
    shutil.copytree(run.rate_folder(10), run.rate_folder(10).with_name("10.interrupted-1"))
    assert [result.rate for result in run.results()] == [10]
    assert run.progress == "1 of 2 rates kept"


def test_a_folder_of_another_rate_is_refused(run: RunDirectory) -> None:
    run.rate_folder(10).rename(run.rate_folder(12))
    for read in (run.results, lambda: run.finished(12)):
        with pytest.raises(BenchmarkError, match=r"12/summary.json is of another rate, 10 req/s"):
            read()


def test_rates_that_one_folder_would_hold_are_refused(run: RunDirectory) -> None:
    with pytest.raises(BenchmarkError, match="10 stands twice"):
        run.scenario.at("10,10.0000001")
