"""docs/reference/faults.md: what tests/cluster/test_faults.py has seen, written by that test and held to it."""

import re
from dataclasses import dataclass

from tests.shell import ROOT, Answer

PLACE = ROOT / "docs" / "reference" / "faults.md"
UPDATE = "PD_MI325X_UPDATE_DOCS"
_HEAD = """\
# Faults and how they end

Written by `tests/cluster/test_faults.py`, which causes each fault on the simulated cluster (real API server, scheduler,
KubeRay and Pulumi; simulated nodes and containers) and fails when this page says something else.
`{update}=1 make test-cluster` writes it anew.

| fault | what you see | what the next command does |
|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One fault, the message as the test saw it (names that differ from run to run replaced), and the way on."""

    fault: str
    message: str
    then: str


def message(answer: Answer, pattern: str) -> str:
    """The part of a command's output that matches, with what changes from run to run replaced by `...`."""
    found = re.search(pattern, answer.text)
    assert found, f"nothing matches {pattern!r} in:\n{answer.text}"
    text = found[0]
    for variable in (r"/\S*/(?=[\w.]+)", r"127\.0\.0\.1:\d+", r"llm-[a-z0-9]{5}\S*", r"\b\d+(\.\d+)? s\b"):
        text = re.sub(variable, "...", text)
    return " ".join(text.split())


def render(rows: list[Row]) -> str:
    lines = [f"| {row.fault} | `{row.message.replace('|', '/')}` | {row.then} |" for row in rows]
    return _HEAD.format(update=UPDATE) + "\n".join(lines) + "\n"
