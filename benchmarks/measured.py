"""The runs at single rates that a search and a comparison reason about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.records import RECORDS_FILE, Request, read_records
from benchmarks.run_directory import WORKLOAD, RateResult, RunDirectory
from benchmarks.validity import shows_overload
from benchmarks.workload import read_workload


@dataclass(frozen=True)
class Measured:
    """One rate: as offered, in requests per second; the requests of its window; and how many were sent in all.

    overloaded: whether it was too much for the service, so that its latencies meet nothing.
    """

    rate: float
    window: Sequence[Request]
    sent: int
    overloaded: bool = False


def read_measured(run: RunDirectory) -> list[Measured]:
    """Every finished rate of a run, from its raw records. Raises BenchmarkError for files that are not whole."""
    return [read_rate(run, result) for result in run.results()]


def read_rate(run: RunDirectory, result: RateResult) -> Measured:
    """One finished rate, from its raw records. Raises BenchmarkError for files that are not whole."""
    folder = run.rate_folder(result.rate)
    requests = read_records(folder / "aiperf" / RECORDS_FILE, read_workload(folder / WORKLOAD))
    window = requests[result.summary.warmup_requests :]
    # The gaps of a thousand tokens a request fill the memory, and most SLOs do not ask for them.
    if not any(bound.metric == "itl" for bounds in run.scenario.slo_sets.values() for bound in bounds):
        window = [replace(request, gaps_ms=()) for request in window]
    return Measured(result.rate, window, len(requests), shows_overload(result.findings))
