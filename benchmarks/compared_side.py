"""One side of a comparison: the runs of a deployment, what they measured, and whether they may be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.kept_files import damaged_files
from benchmarks.measured import Measured, read_measured
from benchmarks.run_directory import RateResult, RunDirectory, RunInfo, open_run
from benchmarks.validity import Finding, Side, check_run


@dataclass(frozen=True)
class ComparedSide:
    """Runs of one deployment under one scenario, oldest first. `left_out`: a line for each run that was not taken."""

    name: str
    runs: Sequence[RunDirectory]
    measured: Sequence[Measured]
    left_out: Sequence[str] = ()

    @property
    def results(self) -> list[RateResult]:
        """Every rate of every run."""
        return [result for run in self.runs for result in run.results()]

    @property
    def seen(self) -> Side:
        """What a check of the comparison may look at."""
        latest = self.runs[-1]
        return Side(
            self.name,
            latest.target,
            latest.scenario,
            _together([run.info.image for run in self.runs]),
            _together([_client(run.info) for run in self.runs]),
            [run.info.started.astimezone(UTC) for run in self.runs],
        )

    @property
    def output_tokens(self) -> float:
        """Mean tokens of a complete answer."""
        lengths = [r.output_tokens for run in self.measured for r in run.window if r.output_tokens and not r.fault()]
        return sum(lengths) / len(lengths) if lengths else 0.0

    def findings(self) -> list[Finding]:
        """What is wrong with the runs, faults that only say `too much load` left aside; sentences name the run."""
        found: list[Finding] = []
        for run in self.runs:
            of_run = check_run(run.target, run.scenario, run.priming(), run.info.image, damaged_files(run))
            found += [_named(f, f"{run.path.name}") for f in of_run if f.outcome == "fault"]
            for result in run.results():
                faults = [f for f in result.findings if f.outcome == "fault"] if result.unusable else []
                found += [_named(f, f"{run.path.name} at {result.rate:g} req/s") for f in faults]
        return found

    def notes(self) -> list[Finding]:
        """What is to be said with the runs' numbers: each kind of note once, with one of its sentences and where it is.

        Notes of an overloaded rate are none: its latencies are not compared.
        """
        places: dict[str, list[str]] = {}
        first: dict[str, Finding] = {}
        for run in self.runs:
            seen = [("", f) for f in check_run(run.target, run.scenario, run.priming(), run.info.image)]
            for result in run.results():
                seen += [(f" at {result.rate:g} req/s", f) for f in result.findings if not result.overloaded]
            for place, finding in seen:
                if finding.outcome == "note":
                    places.setdefault(finding.id, []).append(f"{run.path.name}{place}")
                    first.setdefault(finding.id, finding)
        return [
            _named(found, f"{self.name} {where[0]}" + (f" and {len(where) - 1} more" if len(where) > 1 else ""))
            for found, where in ((found, places[name]) for name, found in first.items())
        ]


def side_of(name: str, runs: Sequence[RunDirectory], left_out: Sequence[str] = ()) -> ComparedSide:
    """Read the raw records of runs. Raises BenchmarkError where one is not finished, or files are not whole."""
    for run in runs:
        if not run.results():
            raise BenchmarkError(f"{run.path} has no finished rate; finish it with --resume")
        if not run.complete:
            raise BenchmarkError(f"{run.path} is not finished ({run.progress}); finish it with --resume")
    return ComparedSide(name, runs, [one for run in runs for one in read_measured(run)], left_out)


_SIDE = "give results/<stack>/<run>, several with commas between them, or a stack that has been measured"


def find_side(named: str, results: Path) -> ComparedSide:
    """A side as the command line names it: run directories with commas between them, or a stack, whose complete runs
    below `results` are taken that have the deployment and the work of the latest. Raises BenchmarkError.
    """
    if not named.strip():
        raise BenchmarkError(f"a side of the comparison is not named; {_SIDE}")
    given = [Path(part.strip()) for part in named.split(",")]
    if len(given) > 1 or (given[0] / "run.json").exists():
        return _of_runs(given)
    complete: list[RunDirectory] = []
    for path in sorted((results / named).glob("*/run.json")):
        run = open_run(path.parent)
        if run.complete:
            complete.append(run)
    if not complete:
        raise BenchmarkError(f"{named} is no run directory, and no stack with a complete run below {results}; {_SIDE}")
    alike = [run for run in complete if _same(run, complete[-1])]
    others = [
        f"{run.path.name} of {named} is left out: another deployment or scenario than the latest"
        for run in complete
        if run not in alike
    ]
    return side_of(named, alike, others)


def _of_runs(paths: Sequence[Path]) -> ComparedSide:
    """Runs that are named one by one: each once, and all of one deployment and scenario. Raises BenchmarkError."""
    for path in paths:
        if not (path / "run.json").exists():
            raise BenchmarkError(f"{path} is no run directory; {_SIDE}")
    runs = [open_run(path) for path in sorted(paths, key=lambda path: path.resolve().name)]
    names = [run.path.resolve() for run in runs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BenchmarkError(f"{twice.name} is named twice on one side; the same answers twice are no more answers")
    for run in runs[:-1]:
        if not _same(run, runs[-1]):
            raise BenchmarkError(
                f"{run.path.name} and {runs[-1].path.name} are of different deployments or scenarios, and no one side; "
                "name runs of the same stack and scenario"
            )
    return side_of(runs[-1].target.stack, runs)


# Where it listens does not matter, nor the commit: what that changed shows in engine arguments or versions, if at all.
_PLACES = {"url", "metrics_urls", "metrics_service", "node_exporter_urls", "node_exporter_service", "commit", "fabric"}
_RATES = {"rates", "search", "seed"}


def _same(run: RunDirectory, latest: RunDirectory) -> bool:
    """Whether two runs may stand for one deployment under one load."""
    places = [one.target.model_dump(exclude=_PLACES) for one in (run, latest)]
    loads = [one.scenario.model_dump(exclude=_RATES) for one in (run, latest)]
    return places[0] == places[1] and loads[0] == loads[1]


def _client(info: RunInfo) -> dict[str, list[str]]:
    """What measured a run, with its version."""
    return {name: [version] for name, version in (info.tools | {"benchmark commit": info.commit}).items() if version}


def _together(each: Sequence[Mapping[str, list[str]]]) -> dict[str, list[str]]:
    """Every version that any run has of a thing."""
    names = dict.fromkeys(name for one in each for name in one)
    return {name: sorted({version for one in each for version in one.get(name, [])}) for name in names}


def _named(finding: Finding, run: str) -> Finding:
    return finding.model_copy(update={"sentence": f"{run}: {finding.sentence}"})
