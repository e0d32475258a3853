"""A run goes on only with what it began with: one measurement is of one software, one service and one trace."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from stand_in_data import scenario_data

from benchmarks import run as runner
from benchmarks.errors import BenchmarkError
from benchmarks.run_directory import RunDirectory
from benchmarks.scenario import Scenario
from benchmarks.target import Target
from benchmarks.workload import build_workload


@pytest.fixture(autouse=True)
def software(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a preparation finds; a test changes it."""
    found: dict[str, Any] = {"aiperf": "1.2", "commit": "abc", "image": {"vllm": ["0.18"]}}
    monkeypatch.setattr(runner, "find_aiperf", lambda name: name)
    monkeypatch.setattr(runner, "aiperf_version", lambda _: found["aiperf"])
    monkeypatch.setattr(runner, "own_commit", lambda: found["commit"])
    monkeypatch.setattr(runner, "image_content", lambda _: found["image"])
    return found


def prepare(target: Target, scenario: Scenario, results: Path, *, resume: bool) -> RunDirectory:
    return runner.prepare(target, scenario, results, "aiperf", resume)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"aiperf": "1.3"}, "other software: aiperf 1.2 then, 1.3 now; go back to that, or start a new run"),
        ({"commit": "def-dirty"}, "benchmark commit abc then, def-dirty now"),
        ({"commit": ""}, "benchmark commit abc then, unknown now"),
        ({"image": {"vllm": ["0.19"]}}, "vllm in the engines' image 0.18 then, 0.19 now"),
        ({"image": {}}, "vllm in the engines' image 0.18 then, unknown now"),
    ],
)
def test_other_software_does_not_go_on(
    software: dict[str, Any], target: Target, scenario: Scenario, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    begun = prepare(target, scenario, tmp_path, resume=False)
    assert prepare(target, scenario, tmp_path, resume=True).path == begun.path
    software |= change
    with pytest.raises(BenchmarkError) as caught:
        prepare(target, scenario, tmp_path, resume=True)
    assert said in str(caught.value)
    assert str(begun.path) in str(caught.value)


def test_another_trace_under_the_same_name_does_not_go_on(target: Target, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    line = {"timestamp": 0, "input_length": 900, "output_length": 9}
    trace.write_text(json.dumps(line) + "\n", encoding="utf-8")
    times = (1, 1)  # a copy may keep them
    os.utime(trace, times)
    replayed = Scenario.model_validate(scenario_data(isl=None, osl=None, trace=str(trace)))
    begun = prepare(target, replayed, tmp_path / "results", resume=False)
    assert prepare(target, replayed, tmp_path / "results", resume=True).path == begun.path
    trace.write_text(json.dumps(line | {"input_length": 100}) + "\n", encoding="utf-8")
    os.utime(trace, times)
    with pytest.raises(BenchmarkError, match=r"differ in scenario\.trace\.sha256; start a new run"):
        prepare(target, replayed, tmp_path / "results", resume=True)
    with pytest.raises(BenchmarkError, match="is not the one that this was begun with"):
        build_workload(begun.scenario, 1, 10, 1, 16)
