"""Draws the post's figures: an SVG and a CSV for each panel that has runs, and one page with all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import Bar, Bars
from benchmarks.charts import Chart, Series, latency_chart
from benchmarks.drawn import Drawn
from benchmarks.errors import BenchmarkError
from benchmarks.figures.measured import Found, Pool, find_runs
from benchmarks.figures.post import AGGREGATED, FIGURES, PD, AtOneRate, Figure, HighestRates, Latencies, Need, Panel
from benchmarks.page import render
from benchmarks.run_directory import write_atomically


@dataclass(frozen=True)
class DrawnPanel:
    """A panel as far as there are runs for it. `chart` is None when there are none; `made`: what was measured."""

    panel: Panel
    chart: Drawn | None
    made: str
    runs: list[str]
    missing: list[str]

    @property
    def file(self) -> str:
        """Name of its files, without ending."""
        return f"figure-{self.panel.key}"


@dataclass(frozen=True)
class DrawnFigure:
    """A figure with its panels."""

    figure: Figure
    panels: list[DrawnPanel]

    @property
    def told(self) -> str:
        """In one line, what there is of it and what it still needs."""
        missing = list(dict.fromkeys(need for panel in self.panels for need in panel.missing))
        drawn = any(panel.chart for panel in self.panels)
        state = "drawn" if drawn and not missing else "drawn in part" if drawn else "not drawn"
        needs = f"; needs usable runs of {', '.join(missing)}" if missing else ""
        return f"Figure {self.figure.number} {state}{needs}"


def draw_figures(results: Path, folder: Path) -> list[DrawnFigure]:
    """Draw what there are runs for; write index.html and each panel's files. Raises BenchmarkError."""
    found = find_runs(results)
    figures = [DrawnFigure(figure, [_panel(panel, found) for panel in figure.panels]) for figure in FIGURES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob("figure-*.*"):  # of runs that are gone
            stale.unlink()
        for panel in (panel for figure in figures for panel in figure.panels):
            if panel.chart:
                write_atomically(folder / f"{panel.file}.svg", panel.chart.file)
                write_atomically(folder / f"{panel.file}.csv", panel.chart.csv.rstrip("\n"))
        write_atomically(folder / "index.html", render("figures/index.html.j2", figures=figures, found=found))
    except OSError as error:
        raise BenchmarkError(f"cannot write to {folder}: {error.strerror}; choose a folder with --out") from None
    return figures


def _panel(panel: Panel, found: Found) -> DrawnPanel:
    pools = found.pools(panel.needs)
    missing = [str(need) for need in panel.needs if need not in pools]
    if isinstance(panel, AtOneRate):
        lacking = [need for need, pool in pools.items() if panel.rate not in pool.by_rate]
        missing += [f"{need} at {panel.rate:g} req/s" for need in lacking]
        pools = {need: pool for need, pool in pools.items() if need not in lacking}
    if not pools:
        return DrawnPanel(panel, None, "", [], missing)
    runs = list({run.path: run for pool in pools.values() for run in pool.runs}.values())
    made = f"Measured: {runs[0].target.model} on {runs[0].target.deployment.platform}"
    gpus = sorted({run.target.deployment.gpus for run in runs})
    made += f", {' or '.join(map(str, gpus))} GPUs" if gpus != [0] else ", no GPU"
    names = [f"{run.target.stack}/{run.info.run_id}" for run in runs]
    return DrawnPanel(panel, _chart(panel, pools, made), made, names, missing)


def _chart(panel: Panel, pools: dict[Need, Pool], made: str) -> Drawn:
    match panel:
        case Latencies():
            return _latencies(panel, pools, made)
        case HighestRates():
            bars = [
                _highest(row, need, pools[need], panel) for row, needs in panel.rows for need in needs if need in pools
            ]
            return Bars(panel.title, "req/s, whole service", (PD, AGGREGATED), bars, made)
        case AtOneRate():
            bars = [_at(row, need, pools[need], panel) for row, needs in panel.rows for need in needs if need in pools]
            return Bars(panel.title, "seconds", (PD, AGGREGATED), bars, made)


def _latencies(panel: Latencies, pools: dict[Need, Pool], made: str) -> Chart:
    colours = {PD: 0, AGGREGATED: 1}
    series: list[Series] = []
    for need, pool in pools.items():
        for statistic in ("mean", "p90"):
            points = pool.points(panel.metric, statistic)
            name = f"{need.topology} {statistic}"
            series.append(Series(name, points, colours[need.kind], dashed=statistic == "p90"))
    bounds = (
        [(f"post's SLO: mean ≤ {panel.bound.bound:g} {panel.bound.unit}", panel.bound.bound_ms)] if panel.bound else []
    )
    return latency_chart(panel.title, series, bounds, made)


def _highest(row: str, need: Need, pool: Pool, panel: HighestRates) -> Bar:
    met, failed = pool.highest_rate(panel.slo[need.scenario] if panel.slo else None)
    if met is None:
        return Bar(row, need.kind, 0.0, f"not at {failed:g}", failed)
    return Bar(row, need.kind, met, f"{met:g}; not at {failed:g}" if failed else f"at least {met:g}", failed)


def _at(row: str, need: Need, pool: Pool, panel: AtOneRate) -> Bar:
    point = next(point for point in pool.points(panel.metric, "mean") if point.x == panel.rate)
    return Bar(
        row, need.kind, point.y / 1000, f"{point.y / 1000:.4g} s", None if point.high is None else point.high / 1000
    )
