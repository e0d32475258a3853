"""`python -m benchmarks`: run, report, compare, figures, scenarios, schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import run as runner
from benchmarks.command_line import INTERRUPTED, UNUSABLE, one_line_endings
from benchmarks.compared_side import find_side
from benchmarks.comparison import Refused
from benchmarks.comparison import compare as compare_sides
from benchmarks.comparison_page import write_comparison
from benchmarks.errors import BenchmarkError
from benchmarks.figures.draw import draw_figures
from benchmarks.prices import DEFAULT_PRICE, find_price
from benchmarks.process import endings_as_interrupt
from benchmarks.report import write_report
from benchmarks.run_directory import RunDirectory, open_run
from benchmarks.run_summary import schema as summary_schema
from benchmarks.scenario import Scenario
from benchmarks.scenario_files import SCENARIOS_FILE, find_scenario, load_scenarios, parse_scenario
from benchmarks.target import read_target
from benchmarks.terminal import Progress, faults, print_comparison, print_summary

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
console = Console()
err = Console(stderr=True)
Results = Annotated[Path, typer.Option(help="Folder that runs are kept in.")]
ScenariosFile = Annotated[Path, typer.Option("--scenarios", help="File that scenarios are read from.")]


@app.command()
def run(
    target: Annotated[str, typer.Argument(help="The stack's `benchmark` output as JSON; - reads standard input.")],
    scenario: Annotated[str | None, typer.Option(help="Scenario to run instead of the target's.")] = None,
    rates: Annotated[str | None, typer.Option(help="Rates in req/s instead of the scenario's, e.g. 0.5,1.")] = None,
    scenarios_file: ScenariosFile = SCENARIOS_FILE,
    scenario_json: Annotated[
        str | None,
        typer.Option(help="A whole scenario as JSON, for where its file is not (`make benchmark` in a Job)."),
    ] = None,
    results: Results = Path("results"),
    resume: Annotated[bool, typer.Option("--resume", help="Finish the latest unfinished run of this stack.")] = False,
    aiperf: Annotated[str, typer.Option(envvar="PD_MI325X_AIPERF", help="The AIPerf executable.")] = "aiperf",
) -> None:
    """Measure a target at each rate of a scenario, and write a report."""
    described = read_target(target)
    if scenario_json is not None:
        chosen = parse_scenario(scenario_json).at(rates)
    else:
        chosen = find_scenario(scenario or described.scenario, scenarios_file).at(rates)
    started = runner.prepare(described, chosen, results, aiperf, resume)
    console.print(f"run directory: {started.path}", soft_wrap=True)
    try:
        with endings_as_interrupt(), Progress(console) as progress:
            runner.execute(started, aiperf, progress.say)
    except KeyboardInterrupt:
        console.print(f"interrupted: {started.left}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
    except BenchmarkError as error:
        raise BenchmarkError(f"{error} ({started.left})") from None
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk names no file
        place = error.filename or f"while writing to {started.path}"
        raise BenchmarkError(f"{error.strerror}: {place} ({started.left})") from None
    _conclude(started)


@app.command()
def report(run_dir: Annotated[Path, typer.Argument(help="results/<stack>/<run>")]) -> None:
    """Write the report of a run again, finished or not, and print its summary."""
    _conclude(open_run(run_dir))


@app.command()
def compare(
    base: Annotated[str, typer.Argument(help="A stack, or run directories with commas between them.")],
    candidate: Annotated[str, typer.Argument(help="What is held against it, named likewise.")],
    results: Results = Path("results"),
    out: Annotated[Path | None, typer.Option(help="Folder for the page and its data.")] = None,
    accept: Annotated[list[str] | None, typer.Option(help="Id of a fault to use the numbers in spite of.")] = None,
    price: Annotated[str, typer.Option(help="A price of benchmarks/prices.yaml, or money a GPU-hour.")] = DEFAULT_PRICE,
    load: Annotated[str | None, typer.Option(help="req/s to reckon nodes for; what the candidate serves.")] = None,
) -> None:
    """Hold a deployment against another: the rate under each SLO, latencies, and what the difference is worth."""
    sides = find_side(base, results), find_side(candidate, results)
    try:
        found = compare_sides(*sides, accept or (), find_price(price), _load(load))
    except Refused as error:
        err.print(f"error: {error}", soft_wrap=True, markup=False, highlight=False)
        raise typer.Exit(UNUSABLE) from None
    print_comparison(console, found)
    name = f"{found.candidate.name}-against-{found.base.name}".replace(" ", "-")
    folder = out or results / "comparisons" / name
    page = write_comparison(found, list(sides[0].runs[-1].scenario.slo), folder)
    console.print(f"comparison: {page}", soft_wrap=True, highlight=False)


@app.command()
def figures(
    out: Annotated[Path, typer.Option(help="Folder that they are written to.")] = Path("results/figures"),
    results: Results = Path("results"),
) -> None:
    """Draw the reference post's figures again from the runs that there are; name what is missing."""
    for figure in draw_figures(results, out):
        console.print(figure.told, soft_wrap=True, highlight=False)
    console.print(f"page: {out / 'index.html'}", soft_wrap=True, highlight=False)


@app.command()
def schema() -> None:
    """Print the JSON schema of a run's summary.json."""
    print(summary_schema(), end="")


@app.command()
def scenarios(scenarios_file: ScenariosFile = SCENARIOS_FILE) -> None:
    """List the scenarios."""
    problems: list[str] = []
    for item in load_scenarios(scenarios_file).values():
        for line in _described(item):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        try:
            item.pinned()
        except BenchmarkError as error:
            problems.append(f"scenario {item.name}: {error}")
    if problems:
        raise BenchmarkError("; ".join(problems))


def _described(item: Scenario) -> list[str]:
    """A scenario in lines of few words, none of which is cut however narrow the terminal is."""
    rates = str(item.search) if item.search else " ".join(f"{rate:g}" for rate in item.rates)
    turns = f" in {item.turns} turns" if item.turns > 1 else ""
    hits = f", hit rate {item.prefix_hit_rate:.0%}{turns}" if item.prefix_hit_rate else ""
    slo = ", ".join(str(bound) for bound in item.slo)
    return [item.name, f"  {item.description}", f"  {item.shape}{hits}; {rates} req/s", f"  {slo}"]


def _load(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise BenchmarkError(f"--load {text!r}: give requests per second, such as 2.5") from None


def _conclude(finished: RunDirectory) -> None:
    if not finished.results():
        raise BenchmarkError(f"{finished.path} has no finished rate yet; run it again with --resume")
    print_summary(console, finished)
    console.print(f"report: {write_report(finished)}", soft_wrap=True)
    if faults(finished):
        raise typer.Exit(UNUSABLE)


def main() -> None:
    """Entry point: a problem that the user can put right is one line on standard error and exit code 1."""
    with one_line_endings(BenchmarkError):
        app()


if __name__ == "__main__":
    main()
