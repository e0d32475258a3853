"""What Pulumi tells of an update while it goes on: what it waits for, and what went wrong."""

import re

from pulumi.automation import EngineEvent

_MARKUP = re.compile(r"<\{%.*?%\}>")
# Our provider says how long it has waited (infra/provider/resource.py); here the time of the whole update is shown.
_SINCE = re.compile(r" \(\d+ s\)$")


class EngineEvents:
    """Takes the events of one update, from any thread. waits_for: the latest, in a line; errors: all, a line each."""

    def __init__(self) -> None:
        self.waits_for = ""
        self.errors: list[str] = []

    def __call__(self, event: EngineEvent) -> None:
        if (said := event.diagnostic_event) is not None and said.severity != "debug":
            line = _first_line(said.message)
            if said.severity == "error" and line:
                self.errors.append(line)
            elif line:
                self.waits_for = _SINCE.sub("", line)
        elif (begun := event.resource_pre_event) is not None and begun.metadata.op.value != "same":
            self.waits_for = f"{begun.metadata.op.value} {begun.metadata.urn.rpartition('::')[2]}"


def _first_line(message: str) -> str:
    lines = (line.strip() for line in _MARKUP.sub("", message).splitlines())
    return next((line for line in lines if line), "")
