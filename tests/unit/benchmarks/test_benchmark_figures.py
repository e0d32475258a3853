"""The reference post's figures: drawn from the runs that there are, and what is missing is named, not made up."""

from __future__ import annotations

import csv
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.figures.draw import draw_figures
from benchmarks.figures.measured import find_runs
from benchmarks.figures.post import FIGURES, Need, mean_below
from benchmarks.run_directory import RateResult, RunDirectory
from benchmarks.scenario_files import find_scenario, load_scenarios
from tools.pictures.simulated_runs import simulated_run

PD, AGGREGATED = Need("deepseek-5k-140-hit30", "1p1d"), Need("deepseek-5k-140-hit30", "agg-2")


def measured(results: Path, need: Need, minute: int, model: str | None = None) -> RunDirectory:
    """A run with little load in it, so that it is simulated quickly; of another model where one is named."""
    scenario = find_scenario(need.scenario).model_copy(
        update={"rates": [1.0, 3.0, 6.0], "search": None, "window_s": 60.0, "min_requests": 300, "max_requests": 300}
    )
    run = simulated_run(results, scenario, need.topology, datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute))
    if model:
        changed = run.target.model_copy(update={"model": model})
        (run.path / "target.json").write_text(changed.model_dump_json(), encoding="utf-8")
    return run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    measured(folder, PD, 1)
    measured(folder, AGGREGATED, 2)
    return folder


@pytest.fixture(scope="module")
def drawn(results: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder of the figures, and what was told of each."""
    folder = tmp_path_factory.mktemp("drawn")
    return folder, [figure.told for figure in draw_figures(results, folder)]


def table(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_every_run_that_a_figure_needs_can_be_made() -> None:
    needs = [need for figure in FIGURES for panel in figure.panels for need in panel.needs]
    assert {need.scenario for need in needs} <= load_scenarios().keys()
    assert [figure.number for figure in FIGURES] == [1, 3, 4, 5, 6]


def test_what_there_is_is_drawn_and_the_rest_is_named(drawn: tuple[Path, list[str]]) -> None:
    folder, told = drawn
    assert told[0].startswith("Figure 1 drawn in part; needs usable runs of qwen-16k-1k on 2p1d, qwen-16k-1k on agg-3")
    assert told[3].startswith("Figure 5 not drawn; needs usable runs of qwen-16k-1k on 1p1d")
    assert {path.name for path in folder.iterdir()} == {
        "index.html",
        *(f"figure-{key}.{kind}" for key in ("1a", "1b", "3b", "4b") for kind in ("svg", "csv")),
    }
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert "Not drawn: it needs" in page
    assert "simulated-1p1d/20260101T000100Z-5131" in page
    assert "simulated queueing model, no engine on cpu, no GPU" in (folder / "figure-3b.svg").read_text("utf-8")


def test_the_numbers_are_those_of_the_runs(results: Path, drawn: tuple[Path, list[str]]) -> None:
    folder, _ = drawn
    pd, aggregated = (run.results() for run in find_runs(results).runs)
    values = {
        (row["series"], float(row["req_per_s"])): float(row["milliseconds"]) for row in table(folder / "figure-3b.csv")
    }
    for topology, run in (("1p1d", pd), ("agg-2", aggregated)):
        for result in run:
            assert values[f"{topology} mean", result.rate] == result.summary.ttft.mean
            assert values[f"{topology} p90", result.rate] == result.summary.ttft.p90
    rates = {row["group"]: (row["req/s, whole service"], row["up_to"]) for row in table(folder / "figure-1b.csv")}
    assert rates == {"PD": _highest_by_hand(pd), "aggregated": _highest_by_hand(aggregated)}


def _highest_by_hand(results: list[RateResult]) -> tuple[str, str]:
    met = [result.summary.tpot.mean is not None and result.summary.tpot.mean <= 30 for result in results]
    first = met.index(False) if False in met else len(met)
    above = str(results[first].rate) if first < len(results) else ""
    return (str(results[first - 1].rate) if first else "0.0"), above


def test_runs_of_the_same_thing_are_taken_together_and_others_never(tmp_path: Path) -> None:
    one, other = measured(tmp_path, PD, 1), measured(tmp_path, PD, 2)
    measured(tmp_path, PD, 3, model="of another kind")
    measured(tmp_path, AGGREGATED, 4)
    pool = find_runs(tmp_path).pools([PD, AGGREGATED])[PD]
    assert [run.info.run_id for run in pool.runs] == [one.info.run_id, other.info.run_id]
    point = pool.points("ttft", "mean")[-1]
    values = [run.results()[-1].summary.ttft.mean or 0.0 for run in (one, other)]
    assert (point.low, point.y, point.high) == (min(values), pytest.approx(sum(values) / 2), max(values))
    slack, tight = (mean_below("tpot", bound) for bound in (1e6, 1e-6))
    assert pool.highest_rate([slack]) == (6.0, None)
    assert pool.highest_rate([slack, tight]) == (None, 1.0)


def test_a_rate_with_a_fault_is_left_out_and_says_why(tmp_path: Path) -> None:
    run = measured(tmp_path, PD, 1)
    pool = find_runs(tmp_path).pools([PD])[PD]
    for number, result in enumerate(run.results()):
        pool = find_runs(tmp_path).pools([PD])[PD]
        assert [point.x for point in pool.points("ttft", "mean")] == [1.0, 3.0, 6.0][number:]
        finding = result.findings[0].model_copy(update={"outcome": "fault", "sentence": "it was not so"})
        run.finish_rate(result.model_copy(update={"findings": [finding]}))
        left_out = ("simulated-1p1d/20260101T000100Z-5131", f"{result.rate:g} req/s: it was not so")
        assert find_runs(tmp_path).left_out[number] == left_out
    assert pool.highest_rate(None) == (None, 1.0)  # 1 and 3 req/s have a fault
    assert find_runs(tmp_path).runs == ()


def test_a_run_that_is_wrong_as_a_whole_or_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    run, damaged = measured(tmp_path, PD, 1), measured(tmp_path, PD, 2)
    (damaged.path / "scenario.json").write_text("{", encoding="utf-8")
    info = run.info.model_copy(update={"image": {"ray": ["0"]}})
    target = run.target.model_copy(update={"versions": {"ray": "1"}})
    (run.path / "run.json").write_text(info.model_dump_json(), encoding="utf-8")
    (run.path / "target.json").write_text(target.model_dump_json(), encoding="utf-8")
    found = find_runs(tmp_path)
    assert found.runs == ()
    assert "ray" in found.left_out[0][1]
    assert "is damaged" in found.left_out[1][1]


def test_the_command_says_what_it_drew(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "figures", "--results", str(results), "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:8] for line in lines[:-1]] == [f"Figure {number}" for number in (1, 3, 4, 5, 6)]
    assert lines[-1] == f"page: {tmp_path / 'index.html'}"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "figures", "--results", str(tmp_path / "none")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("error: no results folder at")
