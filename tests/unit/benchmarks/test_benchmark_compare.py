"""`python -m benchmarks compare` on simulated runs, and its numbers against the raw records."""

from __future__ import annotations

import json
import math
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_in_data import scenario_data

from benchmarks.__main__ import main
from benchmarks.compared_side import find_side
from benchmarks.run_directory import RunDirectory
from benchmarks.scenario import Scenario
from tools.pictures.simulated_runs import simulated_run

START = datetime(2026, 1, 1, tzinfo=UTC)
SLO = [{"metric": "ttft", "statistic": "p90", "bound": 600, "unit": "ms"}]
POST = {"post": [{"metric": "tpot", "statistic": "mean", "bound": 30, "unit": "ms"}]}


def run(results: Path, topology: str, minute: int, **changes: Any) -> RunDirectory:
    data = {"isl": 8192, "osl": 16, "warmup_s": 5, "window_s": 30, "min_requests": 300, "max_requests": 300}
    scenario = Scenario.model_validate(scenario_data(slo=SLO, also=POST, **{**data, **changes}))
    return simulated_run(results, scenario, topology, START + timedelta(minutes=minute))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Searches on 2 aggregated replicas and on 2p1d, which can carry more, and a sweep on the former."""
    folder = tmp_path_factory.mktemp("results")
    search = {"rates": [], "search": {"lowest": 1, "highest": 16}}
    run(folder, "agg-3", 1, **search)
    run(folder, "2p1d", 6, **search, min_requests=400, max_requests=400)
    run(folder, "agg-2", 3, rates=[1, 2])
    return folder


def compare(monkeypatch: pytest.MonkeyPatch, results: Path, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "compare", "--results", str(results), *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def written(results: Path, name: str) -> dict[str, Any]:
    return json.loads((results / "comparisons" / name / "comparison.json").read_text(encoding="utf-8"))


def p90_ttft_ms(run: RunDirectory, rate: float) -> float:
    """From AIPerf's own lines, without this project's reader: over the window that the rate's summary tells."""
    folder = run.rate_folder(rate)
    warmup = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["summary"]["warmup_requests"]
    lines = [json.loads(line) for line in (folder / "aiperf" / "profile_export.jsonl").read_text().splitlines()]
    lines.sort(key=lambda line: line["metadata"]["request_start_ns"])
    return float(np.quantile([line["metrics"]["time_to_first_token"]["value"] for line in lines[warmup:]], 0.9))


def test_its_numbers_are_those_of_the_raw_records(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare(monkeypatch, results, "simulated-agg-3", "simulated-2p1d") == 0
    found = written(results, "simulated-2p1d-against-simulated-agg-3")
    sides = {name: find_side(f"simulated-{name}", results) for name in ("agg-3", "2p1d")}
    rates = {name: [result.rate for result in side.results] for name, side in sides.items()}
    assert found["base"]["rates"] == rates["agg-3"]
    crossings: dict[str, float] = {}
    for name, side in sides.items():
        values = {rate: p90_ttft_ms(side.runs[0], rate) for rate in rates[name]}
        near = sorted(values, key=lambda rate: abs(math.log(values[rate] / 600)))[:8]
        slope, level = np.polyfit(np.log(near), [math.log(values[rate] / 600) for rate in near], 1)
        crossings[name] = math.exp(-level / slope)
    slo = found["slos"][0]
    assert slo["base"]["rate"] == pytest.approx(crossings["agg-3"], rel=0.04)
    assert slo["candidate"]["rate"] == pytest.approx(crossings["2p1d"], rel=0.04)
    assert slo["ratio"]["estimate"] == pytest.approx(slo["candidate"]["rate"] / slo["base"]["rate"])
    assert slo["base"]["passes"] < slo["base"]["rate"] < slo["base"]["fails"]
    for item in found["latencies"]:
        if item["metric"] == "ttft" and item["rate"] in rates["agg-3"]:
            assert item["base"]["low"] <= p90_ttft_ms(sides["agg-3"].runs[0], item["rate"]) <= item["base"]["high"]


def test_it_says_who_is_better_at_what(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(monkeypatch, results, "simulated-agg-3", "simulated-2p1d") == 0
    said = capsys.readouterr().out
    assert "slo: " in said
    assert "under TTFT p90 ≤ 600 ms" in said
    assert "has the lower" not in said  # a search measures a rate once
    page = (results / "comparisons" / "simulated-2p1d-against-simulated-agg-3" / "comparison.html").read_text()
    found = written(results, "simulated-2p1d-against-simulated-agg-3")
    for sentence in [found["sentence"][1:], *found["latency_sentences"]]:
        assert sentence in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_repeated_sweeps_say_which_side_has_the_lower_latency_at_their_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for minute, topology in enumerate(("agg-3", "2p1d") * 2, start=1):
        run(tmp_path, topology, minute, rates=[2], osl=64, min_requests=100, max_requests=100)
    assert compare(monkeypatch, tmp_path, "simulated-agg-3", "simulated-2p1d") == 0
    said = capsys.readouterr().out
    assert "simulated-2p1d has the lower TPOT p90 at 2 req/s" in said
    found = written(tmp_path, "simulated-2p1d-against-simulated-agg-3")
    assert [item["rate"] for item in found["candidate"]["latencies"] if item["metric"] == "tpot"] == [2]


def test_unequal_sides_are_refused_until_that_is_accepted(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(monkeypatch, results, "simulated-agg-2", "simulated-agg-3") == 3
    refused = capsys.readouterr().err
    assert "unequal-gpus: 2 engine replicas on cpu against 3 engine replicas on cpu" in refused
    assert not (results / "comparisons" / "simulated-agg-3-against-simulated-agg-2").exists()
    accepted = compare(monkeypatch, results, "simulated-agg-2", "simulated-agg-3", "--accept", "unequal-gpus")
    assert accepted == 0
    assert "accepted fault unequal-gpus" in capsys.readouterr().out
    found = written(results, "simulated-agg-3-against-simulated-agg-2")
    assert [finding["id"] for finding in found["accepted"]] == ["unequal-gpus"]


def test_a_side_with_a_fault_is_refused(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of raw records that is cut off after the run."""
    broken = run(results / "broken", "agg-2", 1, rates=[1, 2])
    summary = broken.rate_folder(2) / "summary.json"
    told = json.loads(summary.read_text(encoding="utf-8"))
    told["files"] = {"aiperf/profile_export.jsonl": 10**9}
    summary.write_text(json.dumps(told), encoding="utf-8")
    other = run(results / "broken", "1p1d", 2, rates=[1, 2])
    assert compare(monkeypatch, results / "broken", str(broken.path), str(other.path)) == 3
    assert "profile_export.jsonl is cut off" in capsys.readouterr().err


def test_answers_count_once(results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that is named twice would make ranges narrower; and no run has a difference to itself."""
    runs = {side: str(find_side(f"simulated-{side}", results).runs[0].path) for side in ("agg-3", "2p1d", "agg-2")}
    assert compare(monkeypatch, results, f"{runs['agg-3']},{runs['agg-3']}", runs["2p1d"]) == 1
    assert "is named twice on one side" in capsys.readouterr().err
    assert compare(monkeypatch, results, runs["agg-3"], runs["agg-3"]) == 3
    assert "stands on both sides" in capsys.readouterr().err
    assert compare(monkeypatch, results, f"{runs['agg-3']},{runs['agg-2']}", runs["2p1d"]) == 1
    assert "are of different deployments or scenarios" in capsys.readouterr().err
    assert compare(monkeypatch, results, f"{runs['agg-3']}, {results / 'nothing'}", runs["2p1d"]) == 1
    assert f"error: {results / 'nothing'} is no run directory" in " ".join(capsys.readouterr().err.split())


def test_a_run_that_is_not_finished_is_refused(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its directory too; a stack's name takes finished runs alone."""
    whole = find_side("simulated-agg-2", results).runs[0].path
    part = tmp_path / "simulated-agg-2" / "20270101T000000Z-0000"
    shutil.copytree(whole, part)
    (part / "rates" / "2" / "summary.json").unlink()
    assert compare(monkeypatch, results, str(part), str(whole)) == 1
    assert "is not finished (1 of 2 rates kept); finish it with --resume" in " ".join(capsys.readouterr().err.split())
    shutil.copytree(whole, tmp_path / "simulated-agg-2" / whole.name)
    assert [run.path.name for run in find_side("simulated-agg-2", tmp_path).runs] == [whole.name]


def test_notes_of_the_runs_stand_with_the_comparison(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once a side and kind: the simulated runs have dummy weights, and some rates a short window."""
    assert compare(monkeypatch, results, "simulated-agg-3", "simulated-2p1d") == 0
    said = capsys.readouterr().out
    page = (results / "comparisons" / "simulated-2p1d-against-simulated-agg-3" / "comparison.html").read_text()
    notes = [finding["id"] for finding in written(results, "simulated-2p1d-against-simulated-agg-3")["notes"]]
    assert notes.count("weights") == 2
    assert max(map(notes.count, notes)) == 2
    for text in (said, page):
        assert text.count("dummy weights: latency only") == 2


def test_two_runs_of_one_stack_have_names_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = run(tmp_path, "agg-2", 1, rates=[1, 2]), run(tmp_path / "again", "agg-2", 2, rates=[1, 2])
    assert compare(monkeypatch, tmp_path, str(first.path), str(second.path)) == 0
    name = f"simulated-agg-2-{second.path.name}-against-simulated-agg-2-{first.path.name}"
    found = written(tmp_path, name)
    assert (found["base"]["name"], found["candidate"]["name"]) == (
        f"simulated-agg-2 {first.path.name}",
        f"simulated-agg-2 {second.path.name}",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("", "simulated-2p1d"), "a side of the comparison is not named"),
        (("nothing", "simulated-2p1d"), "nothing is no run directory, and no stack with a complete run"),
        (("simulated-2p1d", "simulated-agg-3", "--price", "cheap"), "--price 'cheap'"),
        (("simulated-2p1d", "simulated-agg-3", "--accept", "all"), "--accept all: there is no such finding"),
    ],
)
def test_a_wrong_word_is_one_clear_line(
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    assert compare(monkeypatch, results, *arguments) != 0
    assert said in capsys.readouterr().err
