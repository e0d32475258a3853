"""Bad input at the command line: one line on standard error, its own exit code, nothing started, nothing written."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from stand_in_data import scenario_data, target_data
from stand_in_server import StandIn

from benchmarks.__main__ import main
from benchmarks.errors import BenchmarkError
from benchmarks.scenario import Scenario
from benchmarks.scenario_files import load_scenarios
from tools.pictures.simulated_runs import simulated_run

# Answers `--version` and does nothing else: preflight must stop before load would start.
IDLE_AIPERF = f"#!{sys.executable}\nimport sys\nassert sys.argv[1:] == ['--version'], sys.argv\nprint('1.2')\n"


@pytest.fixture
def aiperf(tmp_path: Path) -> Path:
    """An executable that takes AIPerf's place where none may be run."""
    file = tmp_path / "idle-aiperf"
    file.write_text(IDLE_AIPERF, encoding="utf-8")
    file.chmod(0o755)
    return file


def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command line, expect exit code 1 and return the one line on standard error."""
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    output = capsys.readouterr()
    assert ended.value.code == 1
    assert output.out == ""
    lines = output.err.splitlines()
    assert len(lines) == 1, output.err
    return lines[0]


def write(tmp_path: Path, data: dict[str, Any]) -> str:
    file = tmp_path / "target.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, ["--aiperf", "/nowhere/aiperf"], "aiperf not found at '/nowhere/aiperf'; run `make toolchain`"),
        ({"scenario": "nope"}, [], "no scenario called 'nope'"),
        ({"scenario": "rehearsal"}, ["--rates", "1,fast"], "--rates '1,fast': give numbers"),
        ({"scenario": "rehearsal"}, ["--rates", "0"], "--rates: rates: rates must be different numbers"),
        ({"model": "other"}, [], "does not serve model 'other'; it serves: stand-in-model"),
        ({"tokenizer": "/nowhere/tokenizer"}, [], "tokenizer directory /nowhere/tokenizer does not exist"),
        ({"url": "http://127.0.0.1:9"}, [], "http://127.0.0.1:9/v1/models does not answer"),
        ({"metrics_urls": ["http://127.0.0.1:9/metrics"]}, [], "metrics endpoint http://127.0.0.1:9/metrics does not"),
        ({}, ["--resume"], "no unfinished run of stand-in"),
        ({}, ["--scenarios", "/nowhere.yaml"], "cannot read scenarios from /nowhere.yaml"),
        ({}, ["--scenario-json", '{"name": "mine"}'], "--scenario-json: description: is missing"),
    ],
)
def test_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    service: StandIn,
    aiperf: Path,
    change: dict[str, Any],
    options: list[str],
    said: str,
) -> None:
    target = write(tmp_path, target_data(service.url, scenario="rehearsal") | change)
    results = tmp_path / "results"
    fixed = ["run", target, "--results", str(results)]
    fixed += [] if "--aiperf" in options else ["--aiperf", str(aiperf)]
    line = fails(monkeypatch, capsys, *fixed, *options)
    assert line.startswith("error: ")
    assert said in line
    assert service.prompts == []
    assert list(results.glob("*/*")) == []


def test_a_results_folder_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, service: StandIn, aiperf: Path
) -> None:
    target = write(tmp_path, target_data(service.url, scenario="rehearsal"))
    in_the_way = tmp_path / "file"
    in_the_way.write_text("", encoding="utf-8")
    line = fails(monkeypatch, capsys, "run", target, "--results", str(in_the_way / "results"), "--aiperf", str(aiperf))
    assert "cannot write to the results folder" in line
    assert "--results" in line


def test_a_target_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))
    assert "target standard input: stack: is missing" in fails(monkeypatch, capsys, "run", "-")


def test_report_of_something_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "is not a run directory" in fails(monkeypatch, capsys, "report", str(tmp_path))


def test_scenarios_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "scenarios"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    shown = capsys.readouterr().out
    assert "rehearsal" in shown
    assert "turns" in shown


def test_scenarios_are_listed_whole_however_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.__main__.console", Console(width=40))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "scenarios"])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr().out
    for scenario in load_scenarios().values():
        for part in (scenario.name, scenario.description, scenario.shape, *map(str, scenario.slo)):
            assert part in shown


def with_a_trace(tmp_path: Path, service: StandIn) -> tuple[str, str]:
    """A target, and a file whose scenario replays a trace that is not there."""
    body = {key: value for key, value in scenario_data(trace="lost.jsonl").items() if key not in ("isl", "osl", "name")}
    file = tmp_path / "mine.json"  # JSON is YAML too
    file.write_text(json.dumps({"quick": body}), encoding="utf-8")
    return write(tmp_path, target_data(service.url)), str(file)


def test_a_trace_is_read_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, service: StandIn, aiperf: Path
) -> None:
    target, scenarios = with_a_trace(tmp_path, service)
    results = tmp_path / "results"
    line = fails(
        monkeypatch,
        capsys,
        *("run", target, "--scenarios", scenarios, "--results", str(results), "--aiperf", str(aiperf)),
    )
    assert line.startswith(f"error: cannot read trace {tmp_path / 'lost.jsonl'}: ")
    assert "--resume" not in line
    assert not results.exists()


def test_the_list_of_scenarios_tells_a_trace_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, service: StandIn
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "scenarios", "--scenarios", with_a_trace(tmp_path, service)[1]])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert f"error: scenario quick: cannot read trace {tmp_path / 'lost.jsonl'}: " in capsys.readouterr().err


@pytest.mark.parametrize("raised", [OSError(28, "No space left on device"), BenchmarkError("the service is gone")])
def test_what_ends_a_run_before_its_first_rate_is_kept_names_its_folder(
    raised: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    service: StandIn,
    aiperf: Path,
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr("benchmarks.run.find_words", fail)
    target = write(tmp_path, target_data(service.url, scenario="rehearsal"))
    arguments = ["run", target, "--results", str(tmp_path / "results"), "--aiperf", str(aiperf)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 1
    assert str(tmp_path / "results" / "stand-in") in line
    assert "--resume" not in line


def test_a_load_that_is_no_number_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    search = Scenario.model_validate(scenario_data(rates=[1]))
    run = simulated_run(tmp_path, search, "agg-2", datetime(2026, 1, 1, tzinfo=UTC)).path
    other = simulated_run(tmp_path, search, "agg-3", datetime(2026, 1, 1, tzinfo=UTC)).path
    assert "--load 'x': give requests per second" in fails(
        monkeypatch, capsys, "compare", str(run), str(other), "--load=x"
    )
