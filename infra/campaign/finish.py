"""The end of a campaign: its runs, what they are worth, and what they say together."""

from rich.console import Console
from rich.table import Table

from infra.campaign.record import PHASES, CampaignFolder, Step
from tools.toolchain.console import duration


def finish(folder: CampaignFolder, console: Console) -> None:
    """Show every run of a finished campaign with its validity. A comparison of its stacks belongs here."""
    console.print(table(folder))
    for stack in folder.campaign.stacks:
        usable, all_runs = folder.campaign.runs(stack), folder.campaign.runs(stack, usable=False)
        console.print(f"{stack}: {len(usable)} of {len(all_runs)} runs usable", highlight=False)
    for step in folder.campaign.steps:
        for fault in step.faults or ():
            console.print(f"fault {step.run}: {fault}", soft_wrap=True, markup=False, highlight=False)
    for note in folder.campaign.notes:
        console.print(f"note: {note}", soft_wrap=True, markup=False, highlight=False)


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
