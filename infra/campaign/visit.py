"""One step of a campaign: bring a stack up, measure it, destroy it; and whatever goes wrong, leave nothing of it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console

from benchmarks.errors import BenchmarkError
from benchmarks.run_directory import RunDirectory
from infra.campaign.deployments import Deployments, Locked
from infra.campaign.measure import Begun, Wish, judge, measure
from infra.campaign.record import CampaignFolder, Phase, Step
from infra.campaign.voice import Voice, place, rest
from infra.provider.resource import ResourceError
from tools.toolchain.console import Stopwatch

_PROBLEMS = (BenchmarkError, ResourceError, OSError)


@dataclass(frozen=True)
class Visitor:
    """What a step needs."""

    folder: CampaignFolder
    deployments: Deployments
    wish: Wish
    voice: Voice
    console: Console

    def visit(self, step: Step) -> None:
        """Do a step, or what is left of it. Raises KeyboardInterrupt, and StepFailed for everything else.

        When it raises, the stack is gone, or a line has said which command removes it.
        """
        before = self._begin(step)
        try:
            if not step.measured:
                self._measure(step, before)
            self._destroy(step)
        except KeyboardInterrupt:
            self._end(step, "interrupted", "interrupted")
            raise
        except Exception as error:
            # A bug must not leave a stack behind either. Its own text is for a traceback.
            self._end(step, "failed", str(error) or type(error).__name__)
            if isinstance(error, _PROBLEMS):
                raise StepFailed(f"{place(self.folder.campaign, step)}: {error}") from None
            raise

    def _begin(self, step: Step) -> Phase | None:
        """Note that it begins; the phase in which an earlier attempt was killed, whose stack may still be up."""
        before = step.phase if step.deployed else None
        if not step.deployed:
            step.engine, step.phase, step.seconds = None, None, {}
            self._give_up_run(step)
        step.state, step.error, step.attempts = "running", None, step.attempts + 1
        step.started = datetime.now(UTC)
        self.folder.save()
        if before is not None:
            self.voice.note(f"{place(self.folder.campaign, step)} was cut off in its {before}: going on there")
        return before

    def _measure(self, step: Step, before: Phase | None) -> None:
        with self._phase(step, "up", f"pulumi up of {step.stack}"):
            if before is None and self.deployments.is_up(step.stack):
                raise BenchmarkError(already_up(step.stack))
            fresh, step.deployed = not step.deployed, True
            try:
                deployed = self.deployments.up(step, self.folder.log(step), self.folder.save)
            except Locked:
                step.deployed = not fresh  # what is there, if anything, is somebody else's
                raise
        begun = None
        if before == "benchmark" and not deployed.changed:
            begun = Begun(self.wish.results / step.run if step.run else None)
        else:
            self._give_up_run(step)
        with self._phase(step, "benchmark", f"benchmark of {step.stack}", moving=False):
            run = measure(deployed.outputs, self.wish, self.console, begun, lambda run: self._note_run(step, run))
            step.faults = judge(run)

    def _destroy(self, step: Step) -> None:
        with self._phase(step, "destroy", f"pulumi destroy of {step.stack}"):
            self.deployments.destroy(step, self.folder.log(step), self.folder.save)
        step.deployed = False
        self._finish(step)

    def _finish(self, step: Step) -> None:
        step.state, step.error, step.ended = "done", None, datetime.now(UTC)
        self.folder.save()

    def _end(self, step: Step, state: str, why: str) -> None:
        """Destroy what the step has brought up, and note how it ended."""
        step.error = why
        if step.deployed:
            self._undo(step)
        if step.measured and not step.deployed:  # the run is there, the stack is gone: nothing is left to do
            self._finish(step)
            return
        step.state = "interrupted" if state == "interrupted" else "failed"
        step.ended = datetime.now(UTC)
        self.folder.save()

    def _undo(self, step: Step) -> None:
        with _impatience_is_for_pulumi():
            self.voice.note(f"{step.error}; pulumi destroy of {step.stack}, which this step has brought up")
            try:
                with self.voice.waiting(f"pulumi destroy of {step.stack}"):
                    self.deployments.destroy(step, self.folder.log(step), self.folder.save)
            except (KeyboardInterrupt, *_PROBLEMS) as error:
                reason = str(error) or "interrupted again"
                self.voice.note(
                    f"{step.stack} is NOT destroyed ({reason}): `pulumi destroy --stack {step.stack}` does it, "
                    "`make campaign RESUME=1` goes on with what is up"
                )
            else:
                step.deployed = False
                self.voice.note(f"{step.stack} is destroyed")

    def _give_up_run(self, step: Step) -> None:
        if step.run and not step.measured:
            step.given_up.append(step.run)
            step.run = None

    def _note_run(self, step: Step, run: RunDirectory) -> None:
        step.run = str(run.path.relative_to(self.wish.results))
        self.folder.save()

    @contextmanager
    def _phase(self, step: Step, phase: Phase, what: str, *, moving: bool = True) -> Iterator[None]:
        """Say and note that it begins, and how long it took when it ended well."""
        step.phase = phase
        self.folder.save()
        campaign = self.folder.campaign
        self.voice.note(f"{place(campaign, step)}: {what}; {rest(campaign, step)}")
        watch = Stopwatch()
        if moving:
            with self.voice.waiting(what):
                yield
        else:
            yield
        # After `kill -9` an `up` that finds all there says nothing about how long one takes.
        step.seconds[phase] = max(step.seconds.get(phase, 0.0), round(watch.seconds, 1))
        self.folder.save()


class StepFailed(BenchmarkError):
    """A step failed, and says at which and why."""


def already_up(stack: str) -> str:
    """Why a campaign leaves a stack alone."""
    return f"{stack} is up already, and a campaign would destroy it; `pulumi destroy --stack {stack}`, or take it out"


@contextmanager
def _impatience_is_for_pulumi() -> Iterator[None]:
    """Only Ctrl-C counts, and only while a Pulumi process can hear it (tools/foreground.py).

    A closed terminal says more than once that it is closed, and the second time would else end the clean-up.
    """
    handlers = {signal.SIGINT: lambda *_: None, signal.SIGTERM: signal.SIG_IGN, signal.SIGHUP: signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
