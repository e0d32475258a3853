"""Which runs there are below a results folder, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.charts import Point
from benchmarks.errors import BenchmarkError
from benchmarks.figures.post import Need
from benchmarks.run_directory import RateResult, RunDirectory, open_run
from benchmarks.slo import Metric, Slo, Statistic
from benchmarks.summary import RateSummary
from benchmarks.validity import check_run


@dataclass(frozen=True)
class Pool:
    """All runs of a need, from one model on one platform.

    by_rate: rate -> its usable results, lowest rate first. faulty: rates at which some run has a fault.
    """

    runs: tuple[RunDirectory, ...]
    by_rate: dict[float, list[RateResult]] = field(repr=False)
    faulty: frozenset[float]

    def points(self, metric: Metric, statistic: Statistic) -> list[Point]:
        """One statistic over the rate: of one run with its interval; of several their mean, lowest and highest."""
        return [point for rate, results in self.by_rate.items() if (point := _point(rate, results, metric, statistic))]

    def highest_rate(self, slo: Sequence[Slo] | None) -> tuple[float | None, float | None]:
        """(highest rate that is shown to meet the SLO at it and below, lowest that is not); None where there is none.

        A rate meets it where every run of that rate does without a fault. Without `slo`: the SLO that each run has.
        """
        best: float | None = None
        for rate in sorted(self.by_rate.keys() | self.faulty):
            if rate in self.faulty or not all(_met(result.summary, slo) for result in self.by_rate[rate]):
                return best, rate
            best = rate
        return best, None


@dataclass(frozen=True)
class Found:
    """What is below a results folder. `left_out`: runs, or a rate of one, that say nothing, and why."""

    runs: tuple[RunDirectory, ...]
    left_out: tuple[tuple[str, str], ...]

    def pools(self, needs: Iterable[Need]) -> dict[Need, Pool]:
        """The runs of each need that has any: those of the one model and platform that covers most needs.

        Numbers of a rehearsal and of the real thing never come into one chart. The latest decides between equals.
        """
        covered: dict[tuple[str, str], dict[Need, list[RunDirectory]]] = {}
        for need in dict.fromkeys(needs):
            for run in self.runs:
                if (run.scenario.name, run.target.deployment.topology) == (need.scenario, need.topology):
                    made = (run.target.model, run.target.deployment.platform)
                    covered.setdefault(made, {}).setdefault(need, []).append(run)
        if not covered:
            return {}
        best = max(
            covered.values(), key=lambda of: (len(of), max(r.info.started for runs in of.values() for r in runs))
        )
        return {need: _pool(runs) for need, runs in best.items()}


def find_runs(results: Path) -> Found:
    """All runs below `results` with a usable rate, oldest first. Raises BenchmarkError when there is no such folder."""
    if not results.is_dir():
        raise BenchmarkError(f"no results folder at {results}; name one with --results")
    usable: list[RunDirectory] = []
    left_out: list[tuple[str, str]] = []
    for path in sorted(file.parent for file in results.glob("*/*/run.json")):
        name = f"{path.parent.name}/{path.name}"
        try:
            run = open_run(path)
            problems = _problems(run)
        except BenchmarkError as error:
            left_out.append((name, str(error)))
            continue
        left_out += [(name, problem) for problem in problems]
        if any(not _fault(result) for result in run.results()) and not _fault_of_all(run):
            usable.append(run)
    return Found(tuple(sorted(usable, key=lambda run: run.info.started)), tuple(left_out))


def _problems(run: RunDirectory) -> list[str]:
    results = run.results()
    if not results:
        return ["no rate is finished"]
    if problem := _fault_of_all(run):
        return [problem]
    return [f"{result.rate:g} req/s: {problem}" for result in results if (problem := _fault(result))]


def _fault_of_all(run: RunDirectory) -> str:
    findings = check_run(run.target, run.scenario, run.priming(), run.info.image)
    return next((finding.sentence for finding in findings if finding.outcome == "fault"), "")


def _fault(result: RateResult) -> str:
    return next((finding.sentence for finding in result.findings if finding.outcome == "fault"), "")


def _pool(runs: Sequence[RunDirectory]) -> Pool:
    by_rate: dict[float, list[RateResult]] = {}
    faulty: set[float] = set()
    for run in runs:
        for result in run.results():
            if _fault(result):
                faulty.add(result.rate)
            else:
                by_rate.setdefault(result.rate, []).append(result)
    return Pool(tuple(runs), dict(sorted(by_rate.items())), frozenset(faulty))


def _point(rate: float, results: Sequence[RateResult], metric: Metric, statistic: Statistic) -> Point | None:
    latencies = [result.summary.latency(metric) for result in results]
    values = [value for latency in latencies if (value := latency.get(statistic)) is not None]
    if not values:
        return None
    if len(values) > 1:
        return Point(rate, sum(values) / len(values), min(values), max(values))
    low, high = next(latency.intervals.get(statistic, (None, None)) for latency in latencies if latency.get(statistic))
    return Point(rate, values[0], low, high)


def _met(summary: RateSummary, slo: Sequence[Slo] | None) -> bool:
    if slo is None:
        return summary.slo_met is True
    values = [(summary.latency(bound.metric).get(bound.statistic), bound.bound_ms) for bound in slo]
    return all(value is not None and value <= bound for value, bound in values)
