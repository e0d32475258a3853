"""The stacks of this checkout on the user's backend, through Pulumi's Automation API."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi.automation import (
    CommandError,
    ConcurrentUpdateError,
    LocalWorkspace,
    Stack,
    StackNotFoundError,
    StackSummary,
)

from benchmarks.errors import BenchmarkError
from infra.campaign.engine_events import EngineEvents
from infra.campaign.program import PulumiProgram
from infra.campaign.record import EngineProcess, Step
from infra.provider.processes import Process

Waits = Callable[[str], None]
_POLL_S = 0.5


@dataclass(frozen=True)
class Deployed:
    """What an `up` came to. outputs: with secrets in the clear. changed: whether it did anything at all."""

    outputs: dict[str, Any]
    changed: bool


class PulumiFailed(BenchmarkError):
    """A Pulumi command failed; the message is its reason."""


class Locked(PulumiFailed):
    """Somebody else is updating the stack."""


class Deployments:
    """Selects, brings up and destroys stacks. Every method raises BenchmarkError, or KeyboardInterrupt once Pulumi has
    ended. `waits` is told what an update waits for, twice a second."""

    def __init__(self, checkout: Path, waits: Waits) -> None:
        self._program = PulumiProgram()
        self._workspace = LocalWorkspace(work_dir=str(checkout), pulumi_command=self._program)
        self._waits = waits

    def selected(self) -> StackSummary | None:
        """The stack that the user has selected."""
        try:
            return self._workspace.stack()
        except CommandError as error:
            failed = self._failed("cannot list stacks", error)
            raise PulumiFailed(
                f"{failed}; `make stacks` registers the shipped ones, `pulumi login` says where"
            ) from None

    def select(self, name: str) -> Stack:
        """A stack of the backend."""
        try:
            return Stack.select(name, self._workspace)
        except StackNotFoundError:
            fix = "`pulumi stack ls` lists those there are, `make stacks` registers the shipped ones"
            raise BenchmarkError(f"there is no stack called {name}; {fix}") from None
        except CommandError as error:
            raise self._failed(f"cannot select {name}", error) from None

    def config(self, name: str) -> dict[str, str]:
        """The stack's configuration: whole keys, values as text, secrets in the clear."""
        try:
            found = self.select(name).get_all_config()
        except CommandError as error:
            raise self._failed(f"cannot read the configuration of {name}", error) from None
        return {key: value.value for key, value in found.items()}

    def is_up(self, name: str) -> bool:
        """Whether the stack has resources."""
        try:
            state = self.select(name).export_stack().deployment or {}
        except CommandError as error:
            raise self._failed(f"cannot read the state of {name}", error) from None
        return any(not resource["type"].startswith("pulumi:") for resource in state.get("resources") or [])

    def preview(self, name: str, log: Path) -> None:
        """Let the program and its checks look at what they would do. Changes nothing."""
        events = self._prepare(log, lambda _pid: None)
        stack = self.select(name)
        try:
            stack.preview(on_event=events, color="never")
        except CommandError as error:
            raise self._failed(f"pulumi preview of {name} failed", error, events) from None
        except RuntimeError:  # it asks for a summary that an interrupted preview has not
            raise PulumiFailed(f"pulumi preview of {name} ended early; its words are in {log}") from None

    def up(self, step: Step, log: Path, save: Callable[[], None]) -> Deployed:
        """Bring the step's stack up, or look whether it still is. `save` writes down which process does it."""
        again = step.engine is not None
        events = self._prepare(log, _note(step, save))
        stack = self.select(step.stack)

        def act() -> Deployed:
            # What is there may have died with the machine, which only a refresh finds out.
            done = stack.up(on_event=events, color="never", show_secrets=False, suppress_outputs=True, refresh=again)
            changes = done.summary.resource_changes or {}
            outputs = {name: output.value for name, output in done.outputs.items()}
            return Deployed(outputs, changed=any(count and kind != "same" for kind, count in changes.items()))

        return self._unlocked(stack, step, act, f"pulumi up of {step.stack} failed", events)

    def destroy(self, step: Step, log: Path, save: Callable[[], None]) -> None:
        """Destroy the step's stack, whatever there is of it. Its configuration and history stay."""
        events = self._prepare(log, _note(step, save))
        stack = self.select(step.stack)

        def act() -> None:
            stack.destroy(on_event=events, color="never", show_secrets=False, suppress_outputs=True)

        self._unlocked(stack, step, act, f"pulumi destroy of {step.stack} failed", events)

    def restore_selection(self, selected: StackSummary | None) -> None:
        """Select what the user had selected."""
        if selected is not None:
            self.select(selected.name)

    def _prepare(self, log: Path, started: Callable[[int], None]) -> EngineEvents:
        events = EngineEvents()
        self._program.log, self._program.started = log, started
        self._program.tick = lambda: self._waits(events.waits_for)
        return events

    def _unlocked[T](self, stack: Stack, step: Step, act: Callable[[], T], problem: str, events: EngineEvents) -> T:
        """Do it; where a process of an earlier attempt holds the stack's lock, after its end, be it by `kill -9`."""
        earlier = step.engine
        self._let_it_end(step.stack, earlier)
        try:
            try:
                return act()
            except ConcurrentUpdateError as error:
                # Backends that are files name the process that has the lock. Ours has ended: it was killed.
                if earlier is None or f"(pid {earlier.pid})" not in str(error):
                    raise
                stack.cancel()
                stack.refresh(clear_pending_creates=True, color="never", show_secrets=False)
                return act()
        except ConcurrentUpdateError as error:
            raise Locked(f"{problem}: {self._reason(error, None)}") from None
        except CommandError as error:
            raise self._failed(problem, error, events) from None

    def _let_it_end(self, name: str, engine: EngineProcess | None) -> None:
        if engine is None:
            return
        process = Process(engine.pid, engine.started)
        while process.alive():
            self._waits(f"pulumi, process {engine.pid}, still works on {name} since the campaign before was killed")
            time.sleep(_POLL_S)

    def _failed(self, problem: str, error: CommandError, events: EngineEvents | None = None) -> PulumiFailed:
        return PulumiFailed(f"{problem}: {self._reason(error, events)}")

    def _reason(self, error: CommandError, events: EngineEvents | None) -> str:
        """In a line: what the update complained of, else what the command said."""
        if events and events.errors:
            return events.errors[0]
        lines = [line.strip() for line in self._program.said.stderr.splitlines() if line.strip()]
        said = next((line for line in lines if line.startswith("error:")), lines[-1] if lines else type(error).__name__)
        return said.removeprefix("error:").strip()


def _note(step: Step, save: Callable[[], None]) -> Callable[[int], None]:
    def note(pid: int) -> None:
        step.engine = EngineProcess(**Process.of(pid).as_properties())
        save()

    return note
