"""Start a benchmark on Kubernetes or come back to one, bring its results here, and report as a local one does."""

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.command_line import TO_PUT_RIGHT, UNUSABLE, USABLE
from benchmarks.errors import BenchmarkError
from benchmarks.preflight import check_results_folder
from benchmarks.report import write_report
from benchmarks.run_directory import RunDirectory, open_run
from benchmarks.scenario import Scenario
from benchmarks.scenario_files import SCENARIOS_FILE, find_scenario
from benchmarks.terminal import faults, print_summary
from infra.benchmark_job.copy_runs import copy_runs
from infra.benchmark_job.deadline import deadline_seconds
from infra.benchmark_job.follow import Outcome, Stuck, follow, look_back
from infra.benchmark_job.job import Jobs
from infra.benchmark_job.kube_api import PROBLEMS, Json, KubeApi
from infra.benchmark_job.outputs import Outputs
from infra.benchmark_job.view import View


class Interrupted(Exception):
    """Ctrl-C, with what it leaves behind, in one line."""


@dataclass(frozen=True)
class Choice:
    """What the user asked for: a scenario and rates other than the stack's, a scenarios file of their own."""

    scenario: str | None = None
    rates: str | None = None
    resume: bool = False
    scenarios_file: Path | None = None

    def find(self, default: str) -> Scenario:
        """The scenario chosen, or `default`, at the rates chosen. Raises BenchmarkError."""
        return find_scenario(self.scenario or default, self.scenarios_file or SCENARIOS_FILE).at(self.rates)

    @property
    def options(self) -> list[str]:
        """The same choice on the command line of `python -m benchmarks run` on this machine."""
        file = ["--scenarios", str(self.scenarios_file)] if self.scenarios_file else []
        name = ["--scenario", self.scenario] if self.scenario else []
        return [*file, *name, *self._rates_and_resume]

    def options_elsewhere(self, chosen: Scenario) -> list[str]:
        """The same where this machine's files are not. Raises BenchmarkError when the scenario needs one of them."""
        if self.scenarios_file is None:
            return self.options
        if chosen.trace is not None:
            raise BenchmarkError(
                f"scenario {chosen.name} reads the trace {chosen.trace.file}, which a Job in the cluster does not see; "
                "describe its lengths with lognormal, or build it into the benchmark's image with a scenario there"
            )
        return ["--scenario-json", chosen.model_dump_json(exclude_defaults=True), *self._rates_and_resume]

    @property
    def _rates_and_resume(self) -> list[str]:
        return [*(["--rates", self.rates] if self.rates else []), *(["--resume"] if self.resume else [])]


@dataclass(frozen=True)
class Measured:
    """How a benchmark ended: USABLE or UNUSABLE, and its run as it lies here; None when it is not known which."""

    code: int
    run: RunDirectory | None


def run(
    outputs: Outputs, results: Path, console: Console, choice: Choice, ctrl_c: str = "leaves it running"
) -> Measured:
    """Start a benchmark and see it to its end. Raises BenchmarkError, ResourceError, Interrupted.

    `ctrl_c`: what the caller makes of one, for the line that tells of the Job.
    """
    check_results_folder(results)
    # So that a wrong name, rate or file is found here and not by a pod.
    choice.options_elsewhere(choice.find(outputs.benchmark_job.scenario))
    jobs = Jobs(KubeApi(outputs.cluster), outputs.benchmark_job)
    cronjob = jobs.template()
    jobs.check_service()
    chosen = choice.find(choice.scenario or jobs.deployed_scenario())
    job = jobs.start(cronjob, choice.options_elsewhere(chosen), deadline_seconds(chosen))
    return _see_to_its_end(jobs, cronjob, job, results, console, ctrl_c)


def come_back(outputs: Outputs, results: Path, console: Console, ctrl_c: str = "leaves it running") -> Measured:
    """Follow the benchmark that is running, if one is; bring results here; how it ended, or else the latest.

    Raises BenchmarkError, ResourceError, Interrupted.
    """
    check_results_folder(results)
    jobs = Jobs(KubeApi(outputs.cluster), outputs.benchmark_job)
    cronjob = jobs.template()
    active = jobs.active()
    if active is not None:
        return _see_to_its_end(jobs, cronjob, active, results, console, ctrl_c)
    latest = next(iter(jobs.all()), None)
    outcome = look_back(jobs, latest) if latest is not None else None
    return _bring_home(jobs, cronjob, latest, outcome, results, console)


def _see_to_its_end(jobs: Jobs, cronjob: Json, job: Json, results: Path, console: Console, ctrl_c: str) -> Measured:
    name, namespace = job["metadata"]["name"], jobs.place.namespace
    stop = f"kubectl delete job {name} -n {namespace}"
    left = f"{name} goes on without this terminal; come back with `make results`, or stop it with `{stop}`"
    with View(console) as view, _interruptible(left):
        view.note(f"{name} measures {jobs.place.stack} in namespace {namespace}; Ctrl-C {ctrl_c}")
        try:
            outcome = follow(jobs, job, view)
        except Stuck as error:
            jobs.remove(name)  # else it would wait for its deadline, and keep the next one from starting
            raise BenchmarkError(f"{error}; nothing was measured, and the Job is removed") from None
    return _bring_home(jobs, cronjob, job, outcome, results, console)


def _bring_home(
    jobs: Jobs, cronjob: Json, job: Json | None, outcome: Outcome | None, results: Path, console: Console
) -> Measured:
    name = job["metadata"]["name"] if job else ""
    left = "interrupted; the runs stay on the results volume, `make results` copies them"
    try:
        with View(console) as view, _interruptible(left):
            copied = copy_runs(jobs, cronjob, results, view)
    except PROBLEMS as error:
        ended = f"{name} has ended{_with(outcome)}, but " if outcome else ""
        raise BenchmarkError(f"{ended}its results are not here: {error}; `make results` tries again") from None
    folder = results / jobs.place.stack
    console.print(f"{len(copied.new)} new in {folder}, {len(copied.known)} there before", highlight=False)
    run_id = _run_of(outcome, [*copied.new, *copied.known])
    finished = _open(folder / run_id) if run_id else None
    if finished is not None and finished.results():
        # On a terminal, and after a break, the benchmark's own summary has not been seen.
        if outcome is None or not outcome.shown:
            print_summary(console, finished)
        console.print(f"report: {write_report(finished)}", soft_wrap=True, highlight=False)
    return Measured(_exit_code(name, outcome, finished), finished)


def _run_of(outcome: Outcome | None, runs: Sequence[str]) -> str | None:
    """The run that a Job has made, or went on with. Without its log: the latest, if the Job has a result at all."""
    if outcome is None or (outcome.log.run is None and outcome.code in (USABLE, UNUSABLE)):
        return max(runs, default=None)
    return outcome.log.run


def _exit_code(name: str, outcome: Outcome | None, run: RunDirectory | None) -> int:
    """The container's, if it is known, else what the latest run says. Raises BenchmarkError without a result."""
    if outcome is not None and outcome.code in (USABLE, UNUSABLE):
        return outcome.code
    if outcome is not None:
        done = f"; {run.progress}, RESUME=1 goes on" if run else ""
        raise JobFailed(f"{name} ended{_with(outcome)}{done}", outcome.code or TO_PUT_RIGHT)
    if run is None:
        raise BenchmarkError("this stack has no run yet; start one with `make benchmark`")
    return UNUSABLE if faults(run) else USABLE


class JobFailed(BenchmarkError):
    """The benchmark ended without a result. `code`: the exit code to pass on."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def _with(outcome: Outcome) -> str:
    how = f" with exit code {outcome.code}" if outcome.code is not None else ""
    # `Error` is what Kubernetes calls every exit code but 0; OOMKilled and the like say more.
    reasons = [outcome.reason if outcome.reason not in ("Error", "Completed") else "", outcome.log.error]
    said = "; ".join(filter(None, reasons)) or (outcome.log.last if outcome.code else "")
    return f"{how}: {said}" if said else how


def _open(path: Path) -> RunDirectory | None:
    try:
        return open_run(path)
    except BenchmarkError:
        return None


@contextmanager
def _interruptible(left: str):
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(left) from None
