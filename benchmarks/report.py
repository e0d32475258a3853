"""report.html: one file that needs no network, readable on a phone, on paper and in the dark."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Series, layout
from benchmarks.how_kv_moved import rows
from benchmarks.run_directory import RateResult, RunDirectory, write_atomically
from benchmarks.slo import Metric, Statistic
from benchmarks.terminal import milliseconds
from benchmarks.validity import Finding, check_run

_LATENCIES: dict[Metric, str] = {
    "ttft": "Time to first token (TTFT)",
    "tpot": "Time per output token (TPOT)",
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


def write_report(run: RunDirectory) -> Path:
    """Write the report of a run's finished rates; return its path."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["ms"] = milliseconds
    results = run.results()
    page = environment.get_template("report.html.j2").render(
        run=run,
        results=results,
        missing=[rate for rate in run.scenario.sweep if run.finished(rate) is None],
        drawings=[layout(chart) for chart in charts(run, results)],
        size={"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        run_findings=check_run(run.target, run.scenario, run.priming(), run.info.image),
        checks=_check_rows(results),
        moved=rows(results, _rates),
        faulty=[result.rate for result in results if any(f.outcome == "fault" for f in result.findings)],
        best=best_rate(results),
        commands=_commands(run, results),
    )
    write_atomically(run.report, page)
    return run.report


def best_rate(results: Sequence[RateResult]) -> float | None:
    """The highest rate up to which every rate tried met every SLO without a fault; None when the first did not."""
    best: float | None = None
    for result in results:
        if result.summary.slo_met is not True or any(f.outcome == "fault" for f in result.findings):
            break
        best = result.rate
    return best


def charts(run: RunDirectory, results: Sequence[RateResult]) -> list[Chart]:
    """The report's charts, each over offered request rate."""
    drawn: list[Chart] = []
    for metric, title in _LATENCIES.items():
        series = [
            Series(name, [(rate, value) for rate, value in _over_rates(results, metric, name) if value is not None])
            for name in _DRAWN
        ]
        bounds = [
            (f"SLO {slo.statistic} ≤ {slo.bound:g} {slo.unit}", slo.bound_ms)
            for slo in run.scenario.slo
            if slo.metric == metric
        ]
        drawn.append(Chart(title, "milliseconds", series, bounds))
    served = Series("served", [(r.rate, r.summary.served) for r in results])
    drawn.append(Chart("Served against offered rate", "served req/s", [served], diagonal=True))
    return drawn


def _over_rates(
    results: Sequence[RateResult], metric: Metric, statistic: Statistic
) -> list[tuple[float, float | None]]:
    return [(result.rate, result.summary.latency(metric).get(statistic)) for result in results]


def _check_rows(results: Sequence[RateResult]) -> list[CheckRow]:
    ids = list(dict.fromkeys(finding.id for result in results for finding in result.findings))
    return [CheckRow(name, [(r.rate, f) for r in results for f in r.findings if f.id == name]) for name in ids]


def _commands(run: RunDirectory, results: Sequence[RateResult]) -> list[tuple[float, str]]:
    """The AIPerf command line of each rate, as kept beside its raw records."""
    lines: list[tuple[float, str]] = []
    for result in results:
        kept = json.loads((run.rate_folder(result.rate) / "command.json").read_text(encoding="utf-8"))
        lines.append((result.rate, shlex.join(kept["argv"])))
    return lines


def _rates(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:g}" for rate in rates) + " req/s"
