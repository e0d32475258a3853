"""The end of a campaign: its runs, what they are worth, and what they say together."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.compared_side import ComparedSide, side_of
from benchmarks.comparison import compare
from benchmarks.comparison_page import write_comparison
from benchmarks.errors import BenchmarkError
from benchmarks.prices import DEFAULT_PRICE, find_price
from benchmarks.run_directory import open_run
from benchmarks.terminal import print_comparison
from infra.campaign.record import PHASES, CampaignFolder, Step
from tools.toolchain.console import duration


def finish(folder: CampaignFolder, console: Console) -> None:
    """Show every run of a finished campaign with its validity, and hold each further stack against the first."""
    console.print(table(folder))
    for stack in folder.campaign.stacks:
        usable, all_runs = folder.campaign.runs(stack), folder.campaign.runs(stack, usable=False)
        console.print(f"{stack}: {len(usable)} of {len(all_runs)} runs usable", highlight=False)
    for step in folder.campaign.steps:
        for fault in step.faults or ():
            console.print(f"fault {step.run}: {fault}", soft_wrap=True, markup=False, highlight=False)
    for note in folder.campaign.notes:
        console.print(f"note: {note}", soft_wrap=True, markup=False, highlight=False)
    base, *others = folder.campaign.stacks
    for candidate in others:
        try:
            page = _compare(folder, base, candidate, console)
        except BenchmarkError as error:
            console.print(f"no comparison: {error}", soft_wrap=True, markup=False, highlight=False)
        else:
            console.print(f"comparison: {page}", soft_wrap=True, highlight=False)


def _compare(folder: CampaignFolder, base: str, candidate: str, console: Console) -> Path:
    """Raises BenchmarkError where a stack has no usable run, or the two must not be compared."""
    ours, theirs = _side(folder, base), _side(folder, candidate)
    found = compare(ours, theirs, price=find_price(DEFAULT_PRICE))
    print_comparison(console, found)
    bounds = list(ours.runs[-1].scenario.slo)
    return write_comparison(found, bounds, folder.path / f"{candidate}-against-{base}")


def _side(folder: CampaignFolder, stack: str) -> ComparedSide:
    usable = folder.campaign.runs(stack)
    if not usable:
        raise BenchmarkError(f"{stack} has no usable run")
    return side_of(stack, [open_run(folder.results / run) for run in usable])


def table(folder: CampaignFolder) -> Table:
    """One row a step, in the order in which they were done."""
    made = Table(title=f"campaign {folder.campaign.id}", title_justify="left", box=None, padding=(0, 1, 0, 0))
    for heading in ("repeat", "stack", "run", "up", "benchmark", "destroy", "validity"):
        made.add_column(heading, no_wrap=heading in ("stack", "run"))
    for step in folder.campaign.steps:
        times = (duration(step.seconds[phase]) if phase in step.seconds else "–" for phase in PHASES)
        run = step.run.rpartition("/")[2] if step.run else "–"
        made.add_row(str(step.repeat), step.stack, run, *times, _validity(step))
    return made


def _validity(step: Step) -> str:
    if step.faults is None:
        return step.state
    return "fault" if step.faults else "usable"
