"""`python -m infra.benchmark_job`: run, results. Both read a stack's outputs as JSON on standard input."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.command_line import INTERRUPTED, fail, nobody_listens, one_line_endings
from benchmarks.process import endings_as_interrupt
from infra.benchmark_job import measure
from infra.benchmark_job.kube_api import PROBLEMS
from infra.benchmark_job.outputs import read_outputs

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
console = Console()
Results = Annotated[Path, typer.Option(help="Folder that runs are kept in.")]
ScenariosFile = Annotated[
    Path | None, typer.Option("--scenarios", help="File of your own that the scenario is read from.")
]


@app.command()
def run(
    scenario: Annotated[str | None, typer.Option(help="Scenario to run instead of the stack's.")] = None,
    rates: Annotated[str | None, typer.Option(help="Rates in req/s instead of the scenario's, e.g. 0.5,1.")] = None,
    scenarios_file: ScenariosFile = None,
    resume: Annotated[bool, typer.Option("--resume", help="Finish the latest unfinished run of this stack.")] = False,
    results: Results = Path("results"),
) -> None:
    """Start a benchmark as a Job, follow it, and copy its results here."""
    choice = measure.Choice(scenario, rates, resume, scenarios_file)
    raise typer.Exit(measure.run(read_outputs(sys.stdin.read()), results, console, choice).code)


@app.command()
def results(results: Results = Path("results")) -> None:
    """Follow the benchmark that is running, if one is, and copy results here."""
    raise typer.Exit(measure.come_back(read_outputs(sys.stdin.read()), results, console).code)


def main(command: Callable[[], object] = app) -> None:
    """Run a command: what the user can put right is one line on standard error; exit codes as `benchmarks`."""
    with one_line_endings(*PROBLEMS):
        try:
            with endings_as_interrupt():
                command()
        except measure.JobFailed as error:
            fail(str(error), error.code)
        except measure.Interrupted as left:
            _say_if_anybody_listens(str(left))
            sys.exit(INTERRUPTED)


def _say_if_anybody_listens(text: str) -> None:
    """A line for a terminal that may be gone."""
    try:
        print(text, flush=True)
    except OSError:
        nobody_listens()


if __name__ == "__main__":
    main()
