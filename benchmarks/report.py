"""report.html and summary.json of a run, from the same values.

The page is one file that needs no network and no script, readable on a phone, on paper and in the dark.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import strict_json
from benchmarks.charts import Chart, Point, Series, latency_chart
from benchmarks.how_kv_moved import rows
from benchmarks.page import render
from benchmarks.run_directory import RateResult, RunDirectory, write_atomically
from benchmarks.run_summary import FILE as SUMMARY
from benchmarks.run_summary import RunSummary, summarize_run
from benchmarks.slo import Metric, Statistic
from benchmarks.terminal import milliseconds
from benchmarks.validity import Finding

_LATENCIES: dict[Metric, str] = {
    "ttft": "Time to first token (TTFT)",
    "tpot": "Time per output token (TPOT)",
    "itl": "Time between chunks of the stream (ITL)",
    "e2e": "End-to-end latency (E2E)",
}
_DRAWN: tuple[Statistic, ...] = ("p50", "p90")


@dataclass(frozen=True)
class CheckRow:
    """One check over all rates, for the validity table."""

    id: str
    findings: list[tuple[float, Finding]]

    @property
    def worst(self) -> str:
        """The gravest outcome among the rates."""
        outcomes = {finding.outcome for _, finding in self.findings}
        return next(outcome for outcome in ("fault", "note", "ok") if outcome in outcomes)

    @property
    def sentences(self) -> list[tuple[str, str, str]]:
        """(rates, outcome, sentence), rates with the same sentence together."""
        groups: dict[tuple[str, str], list[float]] = {}
        for rate, finding in self.findings:
            groups.setdefault((finding.outcome, finding.sentence), []).append(rate)
        return [(_rates(rates), outcome, sentence) for (outcome, sentence), rates in groups.items()]


@dataclass(frozen=True)
class Tile:
    """A number that stands large below the verdict. `tone`: `ok`, `fault`, or nothing."""

    name: str
    value: str
    below: str
    tone: str = ""


def write_report(run: RunDirectory) -> Path:
    """Write the report and the summary of a run with at least one finished rate; return the report's path."""
    summary = summarize_run(run)
    page = render(
        "report.html.j2",
        run=run,
        said=summary,
        results=summary.rates,
        tiles=tiles(summary),
        drawings=charts(summary),
        checks=_check_rows(summary.rates),
        faulty_checks=_check_rows([result for result in summary.rates if result.unusable]),
        moved=rows(summary.rates, _rates),
        commands=_commands(run, summary.rates),
    )
    write_atomically(run.path / SUMMARY, summary.model_dump_json(indent=2))
    write_atomically(run.report, page)
    return run.report


def tiles(said: RunSummary) -> list[Tile]:
    """The numbers that the verdict rests on: of the highest rate that meets the SLO, or of the lowest measured."""
    best = said.verdict.best_rate
    result = next((r for r in said.rates if r.rate == best), said.rates[0])
    shown = [_boundary_tile(said)]
    for held in result.summary.slo:
        latency = result.summary.latency(held.slo.metric)
        between = latency.intervals.get(held.slo.statistic)
        interval = f"{milliseconds(between[0])} to {milliseconds(between[1])}; " if between else ""
        shown.append(
            Tile(
                f"{held.slo.metric.upper()} {held.slo.statistic} at {result.rate:g} req/s",
                f"{milliseconds(held.measured_ms)} ms",
                f"{interval}SLO\N{NBSP}≤\N{NBSP}{held.slo.bound:g}\N{NBSP}{held.slo.unit}",
                {True: "ok", False: "fault", None: "note"}[held.met],
            )
        )
    served = result.summary
    tokens = f"{served.output_tokens_per_s:,.0f} tokens/s"
    shown.append(Tile(f"output at {result.rate:g} req/s", tokens, f"{served.good:,} complete answers measured"))
    return shown


def _boundary_tile(said: RunSummary) -> Tile:
    name = "highest rate that meets the SLO"
    if said.slos and said.slos[0].highest.ranged:
        highest = said.slos[0].highest
        between = f"{highest.passes:.3g} to {highest.fails:.3g} ({highest.confidence:.0%})"
        return Tile(name, f"{highest.rate:.3g} req/s", between)
    met, failed = said.verdict.best_rate, said.verdict.lowest_not_met
    return Tile(
        name,
        "none" if met is None else f"{met:g} req/s",
        "no higher rate tried" if failed is None else f"not shown at {failed:g} req/s",
    )


def charts(said: RunSummary) -> list[Chart]:
    """The report's charts, each over offered request rate. ITL is drawn only where the SLO bounds it."""
    bounded = {slo.metric for slo in said.scenario.slo}
    drawn: list[Chart] = []
    for metric, title in _LATENCIES.items():
        if metric == "itl" and metric not in bounded:
            continue
        slos = [slo for slo in said.scenario.slo if slo.metric == metric]
        names: dict[Statistic, None] = dict.fromkeys((*_DRAWN, *(slo.statistic for slo in slos)))
        series = [Series(name, _points(said.rates, metric, name)) for name in names]
        bounds = [(f"SLO {slo.statistic} ≤ {slo.bound:g} {slo.unit}", slo.bound_ms) for slo in slos]
        drawn.append(latency_chart(title, series, bounds))
    served = Series("served", [Point(r.rate, r.summary.served) for r in said.rates])
    drawn.append(Chart("Served against offered rate", "served req/s", [served], diagonal=True))
    return drawn


def _points(results: Sequence[RateResult], metric: Metric, statistic: Statistic) -> list[Point]:
    points: list[Point] = []
    for result in results:
        latency = result.summary.latency(metric)
        value = latency.get(statistic)
        if value is not None:
            low, high = latency.intervals.get(statistic, (None, None))
            points.append(Point(result.rate, value, low, high))
    return points


def _check_rows(results: Sequence[RateResult]) -> list[CheckRow]:
    ids = list(dict.fromkeys(finding.id for result in results for finding in result.findings))
    return [CheckRow(name, [(r.rate, f) for r in results for f in r.findings if f.id == name]) for name in ids]


def _commands(run: RunDirectory, results: Sequence[RateResult]) -> list[tuple[float, str]]:
    """The AIPerf command line of each rate, as kept beside its raw records."""
    return [(result.rate, _command(run.rate_folder(result.rate) / "command.json")) for result in results]


def _command(path: Path) -> str:
    """A damaged file is a fault of the run, and no reason to have no report of it."""
    try:
        return shlex.join(strict_json.loads(path.read_bytes())["argv"])
    except (OSError, strict_json.NotJsonError, KeyError, TypeError):
        return f"({path.name} is missing or damaged)"


def _rates(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:g}" for rate in rates) + " req/s"
