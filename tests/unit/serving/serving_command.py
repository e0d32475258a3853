"""Types of the fixtures that run `python -m serving render`."""

import subprocess
from typing import Any, Protocol


class Render(Protocol):
    """Renders a stack by name."""

    def __call__(self, name: str, *options: str) -> subprocess.CompletedProcess[str]: ...


class RenderSettings(Protocol):
    """Renders a stack file that has these settings; a string is the whole file."""

    def __call__(self, settings: dict[str, Any] | str, *options: str) -> subprocess.CompletedProcess[str]: ...
