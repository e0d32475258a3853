"""A run's directory: everything needed to read it again, repeat it, or finish it.

results/<stack>/<time>-<id>/
    run.json  target.json  scenario.json  words.json  priming.json
    sums.json         SHA-256 of those, of each rate's summary.json and of answers.json
    answers.json      up to which rate each SLO is met; written last
    report.html  summary.json
    rates/<rate>/
        workload.json  prompts.jsonl  command.json  aiperf.log  aiperf/…
        metrics-before-<i>.prom  metrics-after-<i>.prom
        summary.json      written last and at once: a rate is finished exactly when it exists
    rates/<rate>.interrupted-<n>/   what a rate had when it was cut off
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from benchmarks.errors import BenchmarkError, first_problem
from benchmarks.evidence import KvProof
from benchmarks.priming import Priming
from benchmarks.scenario import Scenario
from benchmarks.summary import RateSummary
from benchmarks.sums import forget, write_kept
from benchmarks.sums import write_atomically as write_atomically  # others know it by this module
from benchmarks.target import Target
from benchmarks.validity import Finding, only_overload, only_too_short

SUMMARY = "summary.json"
PRIMING = "priming.json"
WORDS = "words.json"
WORKLOAD = "workload.json"
PROMPTS = "prompts.jsonl"
ANSWERS = "answers.json"
INTERRUPTED = ".interrupted-"


class RunInfo(BaseModel):
    """How a run was made. `tools` maps a program to its version; `commit` is the benchmark's own, if known.

    `image`: component -> versions that the engines' images were found to have when they were built, one unless engines
    differ; empty where engines run without an image of ours, or tell no metrics. `sums`: whether it has checksums.
    """

    format: Literal[1] = 1
    run_id: str
    started: datetime
    argv: list[str]
    tools: dict[str, str]
    commit: str = ""
    image: dict[str, list[str]] = Field(default_factory=dict)
    sums: bool = False


class RateResult(BaseModel):
    """Everything a finished rate says. `seed` is AIPerf's.

    Of each file of the rate when it was done: `files` has the bytes, `sha256` the sum in hexadecimal.
    """

    rate: float
    seed: int
    summary: RateSummary
    kv: KvProof
    findings: list[Finding]
    files: dict[str, int] = {}
    sha256: dict[str, str] = {}

    @property
    def overloaded(self) -> bool:
        """True when it has faults, and they show no more than that this rate is too much: for the service or its SLO.

        A search tries rates of which it does not know how slow they are. Where that makes a window too short and the
        SLO is missed besides, its latencies are no numbers to quote, and what they were to tell they have told.
        """
        if only_overload(self.findings):
            return True
        return only_too_short(self.findings) and self.summary.slo_met is False

    @property
    def unusable(self) -> bool:
        """True when a fault makes its numbers worth nothing, not even as `too much`."""
        return not self.overloaded and any(finding.outcome == "fault" for finding in self.findings)


class RunDirectory:
    """One run on disk."""

    def __init__(self, path: Path, info: RunInfo, target: Target, scenario: Scenario) -> None:
        self.path = path
        self.info = info
        self.target = target
        self.scenario = scenario

    @property
    def report(self) -> Path:
        """Where the report goes."""
        return self.path / "report.html"

    def rate_folder(self, rate: float) -> Path:
        """The folder of one rate."""
        return self.path / "rates" / f"{rate:g}"

    def finished(self, rate: float) -> RateResult | None:
        """The result of a rate, or None when it is not finished. Raises BenchmarkError when its file is damaged."""
        path = self.rate_folder(rate) / SUMMARY
        return self._result(path) if path.exists() else None

    def results(self) -> list[RateResult]:
        """Results of all finished rates, lowest rate first."""
        return sorted((self._result(path) for path in self._summaries()), key=lambda result: result.rate)

    def _summaries(self) -> list[Path]:
        """Summaries of finished rates. What was cut off counts for nothing, even where it has one."""
        found = (self.path / "rates").glob(f"*/{SUMMARY}")
        return [path for path in found if INTERRUPTED not in path.parent.name]

    def _result(self, path: Path) -> RateResult:
        result = _read(RateResult, path)
        if path.parent.name != f"{result.rate:g}":
            raise BenchmarkError(f"{path} is of another rate, {result.rate:g} req/s; put the folder back where it was")
        return result

    def priming(self) -> Priming | None:
        """How the service was woken before the last attempt; None when none has begun. Raises BenchmarkError."""
        path = self.path / PRIMING
        return _read(Priming, path) if path.exists() else None

    @property
    def unfinished(self) -> list[float]:
        """The rates of a sweep that have no result yet. Which a search still needs, only its results can tell."""
        return [rate for rate in self.scenario.rates if not (self.rate_folder(rate) / SUMMARY).exists()]

    @property
    def complete(self) -> bool:
        """True when every rate of a sweep is finished, or a search has ended."""
        return not self.unfinished if self.scenario.rates else (self.path / ANSWERS).exists()

    @property
    def progress(self) -> str:
        """How far it has come, such as `2 of 3 rates kept`."""
        done = len(self._summaries())
        return f"{done} of {len(self.scenario.rates)} rates kept" if self.scenario.rates else f"{done} rates kept"

    @property
    def left(self) -> str:
        """What is kept of it after it was cut off, and how it goes on."""
        if self._summaries():
            return f"{self.progress}; the same command with --resume goes on"
        return f"no rate is finished, and nothing is lost; what there is lies in {self.path}"

    def start_rate(self, rate: float) -> tuple[Path, int]:
        """A fresh folder for a rate, and which attempt this is; what an earlier one left is kept beside it."""
        folder = self.rate_folder(rate)
        attempt = 1
        while (aside := folder.with_name(f"{folder.name}{INTERRUPTED}{attempt}")).exists():
            attempt += 1
        if folder.exists():
            folder.rename(aside)
            attempt += 1
        forget(self.path, self._summary_name(rate))
        folder.mkdir(parents=True)
        return folder, attempt

    def finish_rate(self, result: RateResult) -> None:
        """Write a rate's result; from this moment the rate counts as finished."""
        self.keep(self._summary_name(result.rate), result.model_dump_json(indent=2))

    def keep(self, name: str, text: str) -> None:
        """Write a file that the run is judged by, `name` below its folder, and its checksum."""
        write_kept(self.path, name, text)

    def _summary_name(self, rate: float) -> str:
        return (self.rate_folder(rate) / SUMMARY).relative_to(self.path).as_posix()


def create(results: Path, info: RunInfo, target: Target, scenario: Scenario) -> RunDirectory:
    """Make a new run's directory. Raises BenchmarkError when the results folder cannot be written."""
    path = results / target.stack / info.run_id
    try:
        path.mkdir(parents=True)
        write_kept(path, "target.json", target.model_dump_json(indent=2))
        write_kept(path, "scenario.json", scenario.model_dump_json(indent=2))
        info = info.model_copy(update={"sums": True})
        write_kept(path, "run.json", info.model_dump_json(indent=2))
    except OSError as error:
        raise BenchmarkError(f"cannot write to {path}: {error.strerror}; choose a folder with --results") from None
    return RunDirectory(path, info, target, scenario)


def open_run(path: Path) -> RunDirectory:
    """Open an existing run. Raises BenchmarkError when it is none, or damaged."""
    if not (path / "run.json").exists():
        raise BenchmarkError(f"{path} is not a run directory (no run.json in it); give results/<stack>/<run>")
    return RunDirectory(
        path,
        _read(RunInfo, path / "run.json"),
        _read(Target, path / "target.json"),
        _read(Scenario, path / "scenario.json"),
    )


def new_run_id(now: datetime) -> str:
    """A name that sorts by time and is never used twice."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def _read[Model: BaseModel](model: type[Model], path: Path) -> Model:
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise BenchmarkError(f"{path} is damaged or of another version: {first_problem(error)}") from None
    except OSError as error:
        raise BenchmarkError(f"cannot read {path}: {error.strerror}") from None
