"""The runs at single rates that a search and a comparison reason about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.records import RECORDS_FILE, Request, read_records
from benchmarks.run_directory import WORKLOAD, RunDirectory
from benchmarks.workload import read_workload


@dataclass(frozen=True)
class Measured:
    """One rate: as offered, in requests per second; the requests of its window; and how many were sent in all."""

    rate: float
    window: Sequence[Request]
    sent: int


def read_measured(run: RunDirectory) -> list[Measured]:
    """Every finished rate of a run, from its raw records. Raises BenchmarkError for files that are not whole."""
    found: list[Measured] = []
    for result in run.results():
        folder = run.rate_folder(result.rate)
        requests = read_records(folder / "aiperf" / RECORDS_FILE, read_workload(folder / WORKLOAD))
        found.append(Measured(result.rate, requests[result.summary.warmup_requests :], len(requests)))
    return found
