"""Bad input at the command line: one line on standard error, its own exit code, nothing started, nothing written."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from stand_in_data import target_data
from stand_in_server import StandIn

from benchmarks.__main__ import main

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
