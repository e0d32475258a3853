"""The page about the studies, drawn from their data."""

from __future__ import annotations

from pathlib import Path

from tools.study.capacity import Capacity
from tools.study.data import FILE, Studies
from tools.study.same import Comparisons
from tools.toolchain.versions import ROOT

FOLDER = ROOT / "docs" / "explanation" / "data"
PAGE = "method-study.md"

_HEAD = """# How far the method can be believed: studies on simulated services

Written by `make study` from [{file}]({file}); do not edit. The services are simulated
([what by](../../../tools/study/services.py)): their latencies follow a queueing model, so that the true answer is
known. They say how good the method is, and nothing about any hardware. {seconds} min on two cores.

## The highest rate under an SLO

Each service was searched with {searches} seeds, between {lowest:g} and {highest:g} req/s, knowing nothing else. The
truth is from runs of 20,000 requests. The grid it is compared with goes up in steps of 2.5 % and ends at the first rate
that fails.

| service | SLO | truth | largest error | 90 % ranges that hold it | runs, requests (median) | part of a grid, at most |
|---|---|---|---|---|---|---|
"""
_COMPARISONS = """
## Two services against each other

{number} comparisons each, with searches of their own on both sides; a difference is called one where the 99 % range
of the ratio leaves out 1.

| base | candidate | true ratio | more | less | no difference shown | not known |
|---|---|---|---|---|---|---|
"""


def write(folder: Path, studies: Studies) -> None:
    """Write the page beside its data."""
    (folder / PAGE).write_text(text(studies), encoding="utf-8")


def text(studies: Studies) -> str:
    """The page as Markdown."""
    first = studies.capacity[0]
    minutes = max(1, round(studies.seconds / 60))
    head = _HEAD.format(
        file=FILE, seconds=minutes, searches=len(first.searches), lowest=first.lowest, highest=first.highest
    )
    rows = [_row(found) for found in studies.capacity]
    pairs = [
        f"| {pair.base} | {pair.candidate} | {pair.truth:.3g} | "
        + " | ".join(str(pair.count(verdict)) for verdict in ("more", "less", "no difference shown", "not known"))
        + " |"
        for pair in studies.comparisons
    ]
    number = len(studies.comparisons[0].ratios) if studies.comparisons else 0
    return head + "\n".join(rows) + "\n" + _COMPARISONS.format(number=number) + "\n".join(pairs) + "\n"


def sentence(found: Capacity) -> str:
    """One study in a line."""
    return (
        f"truth {found.truth:.3g} req/s, found within {found.within:.1%}, {found.covered} of {len(found.searches)} "
        f"ranges hold it, at most {found.dearest:.0%} of a grid's requests"
    )


def verdicts(pair: Comparisons) -> str:
    """One pair in a line."""
    return f"true ratio {pair.truth:.3g}: " + ", ".join(
        f"{count} {verdict}"
        for verdict in ("more", "less", "no difference shown", "not known")
        if (count := pair.count(verdict))
    )


def _row(found: Capacity) -> str:
    runs = sorted(search.runs for search in found.searches)
    requests = sorted(search.requests for search in found.searches)
    middle = len(runs) // 2
    return (
        f"| {found.service} | {', '.join(found.slo)} | {found.truth:.3g} req/s | {found.within:.1%} | "
        f"{found.covered} of {len(found.searches)} | {runs[middle]}, {requests[middle]:,} | {found.dearest:.0%} |"
    )
