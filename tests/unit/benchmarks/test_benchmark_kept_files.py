"""What was changed, lost or damaged in a run's folder is a fault that names the file, and never a traceback."""

from __future__ import annotations

import io
import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from stand_in_data import scenario_data

from benchmarks.__main__ import main
from benchmarks.answers import read_answers
from benchmarks.kept_files import damaged_files, file_sizes, file_sums
from benchmarks.report import write_report
from benchmarks.run_directory import RunDirectory, open_run
from benchmarks.scenario import Scenario
from benchmarks.terminal import print_summary
from tools.pictures.simulated_runs import simulated_run


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of two rates, whose results know the files of their rates."""
    scenario = Scenario.model_validate(scenario_data(rates=[1, 2]))
    run = simulated_run(tmp_path_factory.mktemp("r"), scenario, "agg-2", datetime(2026, 1, 1, tzinfo=UTC))
    for result in run.results():
        folder = run.rate_folder(result.rate)
        run.finish_rate(result.model_copy(update={"files": file_sizes(folder), "sha256": file_sums(folder)}))
    return run.path


@pytest.fixture
def run(measured: Path, tmp_path: Path) -> RunDirectory:
    """A copy of it to spoil."""
    shutil.copytree(measured, tmp_path / "run")
    assert damaged_files(open_run(tmp_path / "run")) == []
    return open_run(tmp_path / "run")


def edited(path: Path, old: str, new: str) -> None:
    """Another content, of the same size if the arguments are."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("answers.json", '"bounds"', '"bounds" '),
        ("rates/2/summary.json", '"mean"', '"mean" '),
        ("scenario.json", '"bound": 2.0', '"bound": 9.0'),
        ("target.json", '"gpus": 0', '"gpus": 8'),
        ("run.json", '"started"', '"started" '),
    ],
)
def test_an_edit_of_what_a_run_is_judged_by_is_named(run: RunDirectory, name: str, old: str, new: str) -> None:
    edited(run.path / name, old, new)
    assert damaged_files(open_run(run.path)) == [f"{name} is changed since it was written"]


def test_records_of_the_same_size_but_not_the_same_are_named(run: RunDirectory) -> None:
    records = run.rate_folder(2) / "aiperf" / "profile_export.jsonl"
    edited(records, '"value": 64', '"value": 46')
    size = records.stat().st_size
    assert damaged_files(run) == [
        f"2 req/s: aiperf/profile_export.jsonl is changed, its {size:,} bytes are not those that were measured"
    ]


def test_a_rate_that_is_gone_is_named(run: RunDirectory) -> None:
    shutil.rmtree(run.rate_folder(2))
    assert damaged_files(run) == ["rates/2/summary.json is missing"]


@pytest.mark.parametrize("damage", [None, b"{", b"\xff"])
def test_without_the_sums_nothing_is_believed(run: RunDirectory, damage: bytes | None) -> None:
    (run.path / "sums.json").unlink()
    if damage is not None:
        (run.path / "sums.json").write_bytes(damage)
    assert damaged_files(run) == ["sums.json is missing or damaged: nothing shows whether the run is as it was"]


def test_a_run_from_before_the_sums_is_not_judged(run: RunDirectory) -> None:
    (run.path / "sums.json").unlink()
    edited(run.path / "run.json", '"sums": true', '"sums": false')
    assert damaged_files(open_run(run.path)) == []


def test_a_rate_that_is_measured_again_is_not_missing_meanwhile(run: RunDirectory) -> None:
    shutil.rmtree(run.rate_folder(2))
    run.start_rate(2)
    assert damaged_files(run) == []


def test_answers_are_drawn_from_the_records(run: RunDirectory) -> None:
    kept = json.loads((run.path / "answers.json").read_text(encoding="utf-8"))
    before = read_answers(run)
    kept[0]["highest"] |= {"rate": 99, "passes": 98, "fails": 100, "met_up_to": None}
    (run.path / "answers.json").write_text(json.dumps(kept), encoding="utf-8")
    assert read_answers(run) == before
    assert before[0].highest.met_up_to == 2


@pytest.mark.parametrize("damage", [None, b'{"argv": ["aip', b"", b"\xff\xfe\x00[", b"[]"])
@pytest.mark.parametrize("name", ["command.json", "aiperf/profile_export.jsonl", "workload.json"])
def test_a_report_of_a_damaged_rate_is_written_and_says_so(run: RunDirectory, name: str, damage: bytes | None) -> None:
    file = run.rate_folder(1) / name
    file.unlink()
    if damage is not None:
        file.write_bytes(damage)
    print_summary(Console(file=io.StringIO()), run)
    assert f"1 req/s: {name} is " in write_report(run).read_text(encoding="utf-8")


@pytest.mark.parametrize("damage", [b"\xff\xfe\x00[", b"[" * 100_000, b"9" * 5000, b'{"metadata": 3}'])
@pytest.mark.parametrize("name", ["aiperf/profile_export.jsonl", "workload.json"])
def test_a_comparison_with_damaged_records_is_one_line(
    run: RunDirectory,
    measured: Path,
    name: str,
    damage: bytes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (run.rate_folder(1) / name).write_bytes(damage)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "compare", str(run.path), str(measured)])
    with pytest.raises(SystemExit) as ended:
        main()
    (line,) = capsys.readouterr().err.splitlines()
    assert (ended.value.code, str(run.rate_folder(1) / name) in line) == (1, True)
