"""Measures a stack that is up, the way `make benchmark` does: by a Job on Kubernetes, else from this machine."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from benchmarks import run as runner
from benchmarks.errors import BenchmarkError, first_problem
from benchmarks.process import endings_as_interrupt
from benchmarks.report import write_report
from benchmarks.run_directory import RunDirectory, open_run
from benchmarks.scenario_files import find_scenario
from benchmarks.target import parse_target
from benchmarks.terminal import Progress, faults, print_summary
from infra.benchmark_job import measure as on_kubernetes
from infra.benchmark_job.dispatch import find_aiperf
from infra.benchmark_job.job import Jobs
from infra.benchmark_job.kube_api import KubeApi
from infra.benchmark_job.outputs import Outputs

_ENDS_IT = "ends the campaign, and the Job with the stack"


@dataclass(frozen=True)
class Wish:
    """What to measure. None: the stack's own scenario, the scenario's own rates."""

    results: Path
    scenario: str | None
    rates: str | None


@dataclass(frozen=True)
class Begun:
    """A benchmark of this very deployment that a campaign had begun when it was killed. run: known where it has one."""

    run: Path | None


def measure(
    outputs: dict[str, Any], wish: Wish, console: Console, begun: Begun | None, began: Callable[[RunDirectory], None]
) -> RunDirectory:
    """Measure the stack with these outputs; its finished run. `began` is told the run as soon as it has a folder here.

    Raises BenchmarkError, ResourceError, and KeyboardInterrupt.
    """
    if "benchmark" not in outputs:
        raise BenchmarkError("the stack has no output `benchmark`: there is nothing to measure")
    if "benchmark_job" in outputs:
        done = _by_a_job(outputs, wish, console, going_on=begun is not None)
        began(done)
        return done
    return _from_here(outputs["benchmark"], wish, console, begun.run if begun else None, began)


def judge(run: RunDirectory) -> list[str]:
    """Why a finished run is unusable, a sentence each; empty when it is usable."""
    return [f"{place}: {finding.sentence}" for place, finding in faults(run)]


def _from_here(
    output: Any, wish: Wish, console: Console, earlier: Path | None, began: Callable[[RunDirectory], None]
) -> RunDirectory:
    target = parse_target(json.dumps(output), "of the stack")
    scenario = find_scenario(wish.scenario or target.scenario).at(wish.rates)
    aiperf = str(find_aiperf())
    going_on = earlier is not None and not open_run(earlier).complete
    if earlier is not None and not going_on:
        run = open_run(earlier)  # it was killed between its last rate and its report
    else:
        run = runner.prepare(target, scenario, wish.results, aiperf, resume=going_on)
        began(run)
        console.print(f"run directory: {run.path}", soft_wrap=True, highlight=False)
        with endings_as_interrupt(), Progress(console) as progress:
            runner.execute(run, aiperf, progress.say)
    print_summary(console, run)
    console.print(f"report: {write_report(run)}", soft_wrap=True, highlight=False)
    return run


def _by_a_job(outputs: dict[str, Any], wish: Wish, console: Console, *, going_on: bool) -> RunDirectory:
    try:
        where = Outputs.model_validate(outputs)
    except ValidationError as error:
        raise BenchmarkError(f"stack output {first_problem(error)}; run `pulumi up` with this checkout") from None
    try:
        # A Job goes on when its campaign is killed. Those of earlier deployments went with their CronJob.
        if going_on and Jobs(KubeApi(where.cluster), where.benchmark_job).all():
            done = on_kubernetes.come_back(where, wish.results, console, _ENDS_IT)
        else:
            choice = on_kubernetes.Choice(wish.scenario, wish.rates)
            done = on_kubernetes.run(where, wish.results, console, choice, _ENDS_IT)
    except on_kubernetes.Interrupted:
        raise KeyboardInterrupt from None
    if done.run is None:
        raise BenchmarkError("the benchmark ended, but not in a run that is here; `make results` copies what there is")
    return done.run
