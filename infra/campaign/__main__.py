"""`python -m infra.campaign STACK...`: bring up, measure and destroy stacks by turns, on the same nodes."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.command_line import INTERRUPTED, UNUSABLE, one_line_endings
from benchmarks.errors import BenchmarkError
from benchmarks.preflight import check_results_folder
from benchmarks.scenario_files import find_scenario
from infra.benchmark_job.dispatch import find_aiperf
from infra.campaign import record
from infra.campaign.deployments import Deployments
from infra.campaign.finish import finish
from infra.campaign.measure import Wish
from infra.campaign.plan import Settings, check_comparable, visits
from infra.campaign.record import CampaignFolder
from infra.campaign.visit import StepFailed, Visitor, already_up
from infra.campaign.voice import Voice
from infra.provider.resource import ResourceError
from infra.settings import settings_of
from serving.cluster import NodePoolStack
from serving.errors import ConfigError
from tools import foreground
from tools.toolchain.errors import ToolchainError

_REPEATS = 2  # the fewest that have both orders
_GO_ON = "`make campaign RESUME=1` goes on"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)


@app.command()
def campaign(
    stacks: Annotated[list[str] | None, typer.Argument(help="Stacks, in the order of the first repeat.")] = None,
    repeats: Annotated[int | None, typer.Option(help=f"How often each stack is measured; {_REPEATS}.")] = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario for all instead of the stacks' own.")] = None,
    rates: Annotated[str | None, typer.Option(help="Rates in req/s instead of the scenario's, e.g. 0.5,1.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the latest unfinished campaign.")] = False,
    unequal_gpus: Annotated[bool, typer.Option("--unequal-gpus", help="Also stacks of different size.")] = False,
    results: Annotated[Path, typer.Option(help="Folder that runs and campaigns are kept in.")] = Path("results"),
) -> None:
    """Bring up, measure and destroy stacks by turns."""
    foreground.interruptible()
    console = Console()
    voice = Voice(console)
    with record.only_one(results):
        deployments = Deployments(Path.cwd(), voice.waits)
        selected = deployments.selected()
        try:
            if resume:
                folder = record.find_unfinished(results)
                _check_same(folder, stacks or [], repeats, scenario, rates)
            else:
                plan, times = stacks or [], _REPEATS if repeats is None else repeats
                notes = _check(plan, times, scenario, rates, unequal_gpus, results, deployments, voice)
                folder = record.create(results, plan, times, scenario, rates, notes)
            code = _drive(folder, deployments, voice, console)
        finally:
            with suppress(BenchmarkError):  # it must not hide what went wrong first
                deployments.restore_selection(selected)
    raise typer.Exit(code)


def _drive(folder: CampaignFolder, deployments: Deployments, voice: Voice, console: Console) -> int:
    """Do every step that is not done; an exit code."""
    wanted = folder.campaign
    voice.note(f"campaign: {folder.path / record.FILE}")
    for note in wanted.notes:
        voice.note(f"note: {note}")
    visitor = Visitor(folder, deployments, Wish(folder.results, wanted.scenario, wanted.rates), voice, console)
    try:
        for step in wanted.steps:
            if step.state != "done":
                visitor.visit(step)
    except KeyboardInterrupt:
        voice.note(f"interrupted; {_done(folder)}, {_GO_ON}")
        return INTERRUPTED
    except StepFailed as error:
        raise BenchmarkError(f"{error} ({_done(folder)}; {_GO_ON})") from None
    finish(folder, console)
    return UNUSABLE if any(step.faults for step in wanted.steps) else 0


def _done(folder: CampaignFolder) -> str:
    steps = folder.campaign.steps
    return f"{sum(step.state == 'done' for step in steps)} of {len(steps)} steps kept"


def _check(
    stacks: list[str],
    repeats: int,
    scenario: str | None,
    rates: str | None,
    unequal_gpus: bool,
    results: Path,
    deployments: Deployments,
    voice: Voice,
) -> list[str]:
    """Everything that can be found wrong before anything is changed; notes. Raises BenchmarkError, ConfigError."""
    visits(stacks, repeats)
    if scenario is not None:
        find_scenario(scenario).at(rates)
    found: dict[str, Settings] = {}
    for name in stacks:
        try:
            found[name] = settings_of(deployments.config(name))
        except ConfigError as error:
            raise BenchmarkError(f"stack {name}: {error}") from None
    notes = check_comparable(found, scenario, unequal_gpus)
    serving = [stack for stack in found.values() if not isinstance(stack, NodePoolStack)]
    for stack in serving:
        find_scenario(scenario or stack.scenario).at(rates)
    check_results_folder(results)
    if any(stack.target != "kubernetes" for stack in serving):
        find_aiperf()
    for name in stacks:
        if deployments.is_up(name):
            raise BenchmarkError(already_up(name))
    for name in stacks:
        with voice.waiting(f"pulumi preview of {name}"):
            deployments.preview(name, record.campaigns_folder(results) / "preview.log")
    return notes


def _check_same(
    folder: CampaignFolder, stacks: list[str], repeats: int | None, scenario: str | None, rates: str | None
) -> None:
    """Whether what the command line asks for is what the unfinished campaign does. Raises BenchmarkError."""
    its = folder.campaign
    for given, own, name in (
        (stacks, its.stacks, "STACKS"),
        (repeats, its.repeats, "REPEATS"),
        (scenario, its.scenario, "SCENARIO"),
        (rates, its.rates, "RATES"),
    ):
        if given not in (None, [], own):
            shown = " ".join(own) if isinstance(own, list) else own
            raise BenchmarkError(
                f"the unfinished campaign {its.id} has {name}={shown or '(none)'}; give the same or nothing, "
                "or start another without RESUME=1"
            )


def main() -> None:
    """Entry point: what the user can put right is one line on standard error."""
    with one_line_endings(BenchmarkError, ConfigError, ResourceError, ToolchainError):
        app()


if __name__ == "__main__":
    sys.exit(main())
