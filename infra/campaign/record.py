"""What a campaign has done and still has to do: results/campaigns/<id>/campaign.json, written after every step.

`run` and `given_up` are folders below the results folder, as the benchmark itself names them: <stack>/<run>.
"""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import BenchmarkError, first_problem
from benchmarks.run_directory import new_run_id, write_atomically
from infra.campaign.plan import visits

FILE = "campaign.json"
Phase = Literal["up", "benchmark", "destroy"]
PHASES: tuple[Phase, ...] = ("up", "benchmark", "destroy")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class EngineProcess(_Part):
    """A Pulumi process by its id and its start time in clock ticks since boot: ids are used again."""

    pid: int
    started: int


class Step(_Part):
    """One stack brought up, measured and destroyed.

    state: `done` means all three; `running` in a file that nobody works on means that its campaign was killed.
    phase: what is being done, or where it ended; None before the beginning.
    deployed: whether something of the stack may be there. engine: the latest Pulumi process that changed it.
    seconds: how long the phases took that ended well. run: the measurement; given_up: those of earlier attempts.
    faults: why the run is unusable, a sentence each; None before it is judged.
    """

    repeat: int = Field(ge=1)
    stack: str
    state: Literal["planned", "running", "done", "failed", "interrupted"] = "planned"
    phase: Phase | None = None
    attempts: int = 0
    deployed: bool = False
    engine: EngineProcess | None = None
    started: datetime | None = None
    ended: datetime | None = None
    seconds: dict[Phase, float] = Field(default_factory=dict)
    run: str | None = None
    given_up: list[str] = Field(default_factory=list)
    faults: list[str] | None = None
    error: str | None = None

    @property
    def measured(self) -> bool:
        """Whether its benchmark is over."""
        return self.faults is not None


class Campaign(_Part):
    """All steps in their order. scenario, rates: instead of the stacks' own, as the command line gave them."""

    format: Literal[1] = 1
    id: str
    started: datetime
    stacks: list[str] = Field(min_length=1)
    repeats: int = Field(ge=1)
    scenario: str | None = None
    rates: str | None = None
    notes: list[str] = Field(default_factory=list)
    steps: list[Step]

    @property
    def done(self) -> bool:
        """Whether every step is."""
        return all(step.state == "done" for step in self.steps)

    def runs(self, stack: str, *, usable: bool = True) -> list[str]:
        """Runs of one stack in the order in which they were made, without those that have a fault, or with them."""
        mine = [step for step in self.steps if step.stack == stack and step.run and step.measured]
        return [str(step.run) for step in mine if not (usable and step.faults)]


class CampaignFolder:
    """A campaign on disk, below the results folder `results`."""

    def __init__(self, results: Path, campaign: Campaign) -> None:
        self.results = results
        self.campaign = campaign
        self.path = campaigns_folder(results) / campaign.id

    def save(self) -> None:
        """Write the file, whole or not at all."""
        write_atomically(self.path / FILE, self.campaign.model_dump_json(indent=2))

    def log(self, step: Step) -> Path:
        """Where Pulumi's own words on a step are kept, and those on its later attempts behind them."""
        number = self.campaign.steps.index(step) + 1
        return self.path / f"{number:02}-{step.stack}.log"


def campaigns_folder(results: Path) -> Path:
    """Where campaigns are kept."""
    return results / "campaigns"


def create(
    results: Path, stacks: Sequence[str], repeats: int, scenario: str | None, rates: str | None, notes: Sequence[str]
) -> CampaignFolder:
    """A new campaign, planned and written down. Raises BenchmarkError."""
    now = datetime.now(UTC)
    steps = [Step(repeat=repeat, stack=name) for repeat, name in visits(stacks, repeats)]
    campaign = Campaign(
        id=new_run_id(now),
        started=now,
        stacks=list(stacks),
        repeats=repeats,
        scenario=scenario,
        rates=rates,
        notes=list(notes),
        steps=steps,
    )
    folder = CampaignFolder(results, campaign)
    try:
        folder.path.mkdir(parents=True)
        folder.save()
    except OSError as error:
        raise BenchmarkError(
            f"cannot write to {folder.path}: {error.strerror}; choose a folder with RESULTS="
        ) from None
    return folder


def find_unfinished(results: Path) -> CampaignFolder:
    """The latest campaign that is not done. Raises BenchmarkError when there is none, or its file is damaged."""
    for path in sorted(campaigns_folder(results).glob(f"*/{FILE}"), reverse=True):
        try:
            campaign = Campaign.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise BenchmarkError(f"{path} is damaged or of another version: {first_problem(error)}") from None
        if not campaign.done:
            return CampaignFolder(results, campaign)
    raise BenchmarkError(f"no unfinished campaign in {campaigns_folder(results)}; start one without RESUME=1")


@contextmanager
def only_one(results: Path) -> Iterator[None]:
    """Keep a second campaign with the same results away. Raises BenchmarkError; the kernel frees what is killed."""
    folder = campaigns_folder(results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a")
    except OSError as error:
        raise BenchmarkError(f"cannot write to {folder}: {error.strerror}; choose a folder with RESULTS=") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchmarkError(f"another campaign works in {folder}; wait for its end, or choose RESULTS=") from None
        yield
