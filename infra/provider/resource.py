"""What a resource of the `pd` provider implements, in plain Python values."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Any, Protocol

Properties = dict[str, Any]
_MESSAGE_SECONDS = 5.0  # a terminal redraws the line; a log gets one line each time


class ResourceError(Exception):
    """A failure to show to the user: `str(error)` is what went wrong and what to do, without a traceback."""


class Interrupted(ResourceError):
    """The user pressed Ctrl-C while a resource was being made."""


class PartlyUpdated(ResourceError):
    """An update that was begun and did not end well: the resource has these inputs now, and is not as it should be."""

    def __init__(self, reason: str, inputs: Properties, *, interrupted: bool) -> None:
        super().__init__(reason)
        self.inputs = inputs
        self.interrupted = interrupted


class PartlyMade(ResourceError):
    """A resource that was made and is not as it should be: it is recorded, and the next update sees to it."""

    def __init__(self, reason: str, resource_id: str, inputs: Properties, outputs: Properties) -> None:
        super().__init__(reason)
        self.resource_id = resource_id
        self.inputs = inputs
        self.outputs = outputs


@dataclass
class Operation:
    """One running request of the engine: tells the user what it waits for, and hears of a Ctrl-C.

    say(message, lasting): `lasting` messages stay on the screen, the others replace each other. warning(message): one
    that stays, and is counted as a warning.
    """

    say: Callable[[str, bool], None]
    cancelled: Event
    started: float = field(default_factory=monotonic)
    next_message: float = 0.0
    engine: int = field(default_factory=os.getppid)  # another parent later means that the engine was killed
    warning: Callable[[str], None] = field(default=lambda message: None)

    @property
    def elapsed(self) -> float:
        """Seconds since the operation began."""
        return monotonic() - self.started

    def wait(self, what: str, seconds: float = 1.0) -> None:
        """Sleep, showing what is waited for and since when. Raises Interrupted on Ctrl-C."""
        if self.elapsed >= self.next_message:
            self.say(f"{what} ({self.elapsed:.0f} s)", False)
            self.next_message = self.elapsed + _MESSAGE_SECONDS
        if self.cancelled.wait(seconds) or os.getppid() != self.engine:
            raise Interrupted(f"interrupted while waiting for: {what}")


class Resource(Protocol):
    """Life cycle of one resource type. Properties are JSON values; whole numbers are ints."""

    def check(self, olds: Properties, news: Properties) -> list[str]:
        """What is wrong with the inputs, or with the world they meet, before anything is changed."""
        ...

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        """Whether the resource differs from its inputs; a list names inputs that need a replacement."""
        ...

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]: ...

    def planned(self, inputs: Properties) -> Properties:
        """Outputs that are already known in a preview."""
        ...

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        """(inputs, outputs) as they really are now, or None when the resource is gone."""
        ...

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties: ...

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None: ...

    def interrupted(self) -> None:
        """Take back what this process started: the user gave up on this update."""
        ...
