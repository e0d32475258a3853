"""What a person reads while a campaign goes on, also one who has closed the terminal in the meantime."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from benchmarks.command_line import nobody_listens
from infra.benchmark_job.view import View
from infra.campaign.record import PHASES, Campaign, Phase, Step
from tools.toolchain.console import duration


class Voice:
    """Lines that stay, and a moving one for what is being waited for."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._view: View | None = None
        self._what = ""
        self._since = 0.0

    def note(self, text: str) -> None:
        """A line that stays."""
        with _unheard():
            self._console.print(text, soft_wrap=True, markup=False, highlight=False)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """While this lasts, `waits` shows what for."""
        self._what, self._since = what, time.monotonic()
        view = View(self._console)
        with _unheard():
            view.__enter__()
        self._view = view
        try:
            yield
        finally:
            self._view = None
            with _unheard():
                view.__exit__(None, None, None)

    def waits(self, reason: str) -> None:
        """Something is waited for, for this reason."""
        if self._view is not None:
            with _unheard():
                self._view.wait(f"{self._what}: {reason or 'starting'}", time.monotonic() - self._since)


@contextmanager
def _unheard() -> Iterator[None]:
    """A terminal that is gone must not end what goes on."""
    try:
        yield
    except OSError:
        nobody_listens()


def place(campaign: Campaign, step: Step) -> str:
    """`step 3 of 8 (repeat 2 of 2, local-agg-2)`."""
    number = campaign.steps.index(step) + 1
    return f"step {number} of {len(campaign.steps)} (repeat {step.repeat} of {campaign.repeats}, {step.stack})"


def rest(campaign: Campaign, step: Step) -> str:
    """How long a campaign takes from here, in words."""
    seconds = expected_rest_s(campaign, step)
    return "time to go: known after the first step" if seconds is None else f"about {duration(seconds)} to go"


def expected_rest_s(campaign: Campaign, current: Step) -> float | None:
    """Seconds that what is left will take, from what the same took before; None while nothing tells.

    Of a stack that has not been measured yet, the others' times are the best guess. Of the current step, what is
    finished does not count.
    """
    rest_s = 0.0
    for step in campaign.steps:
        if step.state == "done":
            continue
        for phase in PHASES:
            if step is current and phase in step.seconds:
                continue
            usual = _usual_s(campaign, step.stack, phase)
            if usual is None:
                return None
            rest_s += usual
    return rest_s


def _usual_s(campaign: Campaign, stack: str, phase: Phase) -> float | None:
    finished = [step for step in campaign.steps if phase in step.seconds]
    own = [step.seconds[phase] for step in finished if step.stack == stack]
    times = own or [step.seconds[phase] for step in finished]
    return sum(times) / len(times) if times else None
