"""What a person at a terminal sees: progress while a run goes on, and its summary."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.answers import read_answers
from benchmarks.comparison import Comparison
from benchmarks.evidence import KvProof
from benchmarks.kept_files import damaged_files
from benchmarks.run_directory import RateResult, RunDirectory
from benchmarks.status_line import StatusLine
from benchmarks.summary import Latency
from benchmarks.validity import Finding, check_run

# Without a terminal (CI logs) a line every so often instead of a moving one.
LOG_EVERY_S = 10.0


class Progress(StatusLine):
    """Shows what is going on: one moving line on a terminal, sparse lines in a log."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._last = -LOG_EVERY_S

    def say(self, text: str) -> None:
        """Show a line."""
        if self.moving:
            self.show(text)
        elif time.monotonic() - self._last >= LOG_EVERY_S:
            self._last = time.monotonic()
            self._console.print(text, soft_wrap=True, markup=False)


def all_findings(run: RunDirectory) -> list[tuple[str, Finding]]:
    """Every finding of a run with what it is about: `run` or a rate."""
    checked = check_run(run.target, run.scenario, run.priming(), run.info.image, damaged_files(run))
    findings = [("run", finding) for finding in checked]
    for result in run.results():
        findings += [(_place(result), finding) for finding in result.findings]
    return findings


def _place(result: RateResult) -> str:
    return f"{result.rate:g} req/s"


def faults(run: RunDirectory) -> list[tuple[str, Finding]]:
    """The findings that make the numbers unusable. A rate that was too much for the service is a result."""
    too_much = {_place(result) for result in run.results() if result.overloaded}
    return [
        (place, finding) for place, finding in all_findings(run) if finding.outcome == "fault" and place not in too_much
    ]


def overload(run: RunDirectory) -> list[tuple[str, Finding]]:
    """What says that a rate was too much for the service; the numbers of the other rates are none the worse."""
    return [
        (_place(result), finding)
        for result in run.results()
        if result.overloaded
        for finding in result.findings
        if finding.outcome == "fault"
    ]


def print_summary(console: Console, run: RunDirectory) -> None:
    """Print a table of the rates, and every finding that is not ok."""
    # Narrow enough for 80 columns.
    title = f"{run.target.stack} · {run.scenario.name} · latencies p50/p90 in ms"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in ("req/s", "served", "tok/s", "answers", "TTFT", "TPOT", "E2E", "KV", "SLO"):
        table.add_column(column, justify="right", no_wrap=True)
    for result in run.results():
        summary = result.summary
        table.add_row(
            f"{result.rate:g}",
            f"{summary.served:.2f}",
            f"{summary.output_tokens_per_s:.0f}",
            f"{summary.good}/{summary.measured}",
            *(_pair(latency) for latency in (summary.ttft, summary.tpot, summary.e2e)),
            _kv(result.kv),
            "overload" if result.overloaded else {True: "met", False: "not met", None: "unknown"}[summary.slo_met],
        )
    console.print(table)
    for answer in read_answers(run):
        console.print(f"{answer.name}: {', '.join(answer.bounds)}: {answer.highest}", highlight=False, soft_wrap=True)
    wrong = faults(run)
    for label, colour, found in (
        ("fault", "red", wrong),
        ("overload", "yellow", overload(run)),
        ("note", "yellow", [entry for entry in all_findings(run) if entry[1].outcome == "note"]),
    ):
        for places, sentence in _grouped(found):
            console.print(f"[{colour}]{label}[/] {places}: {escape(sentence)}", soft_wrap=True, highlight=False)
    if wrong:
        console.print(
            f"[red]unusable[/]: {len(wrong)} fault{'s' * (len(wrong) > 1)}; these numbers must not be used",
            soft_wrap=True,
        )
    else:
        console.print("[green]usable[/]: no fault found", soft_wrap=True)


def _grouped(found: list[tuple[str, Finding]]) -> list[tuple[str, str]]:
    """Sentences, each with the places that have it: `1, 2 and 4 req/s`."""
    places: dict[str, list[str]] = {}
    for place, finding in found:
        places.setdefault(finding.sentence, []).append(place)
    return [(", ".join(where), sentence) for sentence, where in places.items()]


def print_comparison(console: Console, found: Comparison) -> None:
    """Print what a comparison says: a line for each SLO, for each latency, and for what is to be known with them."""
    for slo in found.slos:
        console.print(f"{slo.name}: {slo.sentence}", soft_wrap=True, markup=False, highlight=False)
    for sentence in found.latency_sentences:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False)
    for finding in found.accepted:
        console.print(f"[red]accepted fault[/] {finding.id}: {escape(finding.sentence)}", soft_wrap=True)
    for finding in [*found.findings, *found.notes]:
        if finding.outcome == "note":
            console.print(f"[yellow]note[/] {finding.id}: {escape(finding.sentence)}", soft_wrap=True)
    for line in found.left_out:
        console.print(f"note: {line}", soft_wrap=True, markup=False, highlight=False)


def _kv(proof: KvProof) -> str:
    """The verdict, and for a proven one the path, where that is known: `proven tcp`."""
    if proof.verdict == "proven" and proof.transport and proof.transport.label != "unknown":
        return f"proven {proof.transport.label}"
    return {"not applicable": "n/a"}.get(proof.verdict, proof.verdict)


def _pair(latency: Latency) -> str:
    return f"{milliseconds(latency.p50)}/{milliseconds(latency.p90)}"


def milliseconds(value: float | None) -> str:
    """Milliseconds with three digits; a dash for a statistic that the samples do not support."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
