"""comparison.html and comparison.json, from the same values."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bars import Bar, Bars
from benchmarks.charts import Point, Series, latency_chart
from benchmarks.comparison import Compared, Comparison
from benchmarks.drawn import Drawn
from benchmarks.errors import BenchmarkError
from benchmarks.highest_rate import HighestRate
from benchmarks.latency_comparison import METRICS, STATISTIC
from benchmarks.page import render
from benchmarks.run_directory import write_atomically
from benchmarks.slo import Metric, Slo

_TITLES = {
    "ttft": "Time to first token (TTFT)",
    "tpot": "Time per output token (TPOT)",
    "e2e": "End-to-end latency (E2E)",
}


def write_comparison(found: Comparison, bounds: list[Slo], folder: Path) -> Path:
    """Write both files into `folder`, which is made; the page's path. `bounds`: of the scenario's own SLO, to be drawn.

    Raises BenchmarkError when the folder cannot be written.
    """
    page = render("comparison.html.j2", said=found, drawings=_drawings(found, bounds), tone=_tone(found))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "comparison.json", found.model_dump_json(indent=2))
        write_atomically(folder / "comparison.html", page)
    except OSError as error:
        raise BenchmarkError(f"cannot write to {folder}: {error.strerror}; choose a folder with --out") from None
    return folder / "comparison.html"


def _tone(found: Comparison) -> str:
    return "met" if found.slos[0].ratio.verdict in ("more", "less") else "open"


def _drawings(found: Comparison, bounds: list[Slo]) -> list[Drawn]:
    drawn: list[Drawn] = []
    bars = [
        Bar(slo.name, name, highest.rate, str(highest), highest.fails)
        for slo in found.slos
        for name, highest in _sides(found, slo.base, slo.candidate)
        if highest.rate is not None
    ]
    if bars:
        drawn.append(Bars("Highest rate under each SLO", "req/s", [found.base.name, found.candidate.name], bars))
    for metric in METRICS:
        series = [_series(side, metric) for side in (found.base, found.candidate)]
        if any(line.points for line in series):
            lines = [(f"SLO {slo}", slo.bound_ms) for slo in bounds if slo.metric == metric]
            drawn.append(latency_chart(f"{_TITLES[metric]}, {STATISTIC}", series, lines))
    return drawn


def _sides(found: Comparison, base: HighestRate, candidate: HighestRate) -> list[tuple[str, HighestRate]]:
    return [(found.base.name, base), (found.candidate.name, candidate)]


def _series(side: Compared, metric: Metric) -> Series:
    """All that a side was measured to have, whether or not the other side was at the same rates."""
    own = [item for item in side.latencies if item.metric == metric]
    return Series(side.name, [Point(item.rate, item.value.value, item.value.low, item.value.high) for item in own])
