"""For tests that run `python -m serving render`: types of the fixtures, settings that are good, and the one line."""

import subprocess
from typing import Any, Protocol

QWEN: dict[str, Any] = {
    "model": "qwen3-235b-a22b-fp8",
    "topology": "2p1d",
    "scenario": "qwen-16k-1k",
    "cluster": {"provider": "doks"},
}


class Render(Protocol):
    """Renders a stack by name."""

    def __call__(self, name: str, *options: str) -> subprocess.CompletedProcess[str]: ...


class RenderSettings(Protocol):
    """Renders a stack file that has these settings; a string is the whole file."""

    def __call__(self, settings: dict[str, Any] | str, *options: str) -> subprocess.CompletedProcess[str]: ...


def one_line(done: Any) -> str:
    assert done.returncode != 0
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def assert_blames(done: Any, key: str, parts: list[str]) -> None:
    """One line that begins with this key and has all of these words behind it."""
    blamed, _, rest = one_line(done).partition(": ")
    assert blamed == key
    for part in parts:
        assert part in rest
