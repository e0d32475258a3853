"""A simulated server in a process of its own, beside the program that measures it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.errors import BenchmarkError
from benchmarks.target import Target, parse_target
from tools.toolchain.versions import ROOT

_PATIENCE_S = 5.0


@contextmanager
def in_own_process(options: Sequence[str]) -> Iterator[Target]:
    """`python -m tools.simulated_server` with these options until the block ends. Raises BenchmarkError."""
    command = [sys.executable, "-m", "tools.simulated_server", *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield parse_target(_target(process), "the simulated server's output")
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _target(process: subprocess.Popen[str]) -> str:
    """What it prints once it serves: JSON whose last line is a brace alone."""
    lines: list[str] = []
    for line in process.stdout or ():
        lines.append(line)
        if line == "}\n":
            return "".join(lines)
    _, error = process.communicate()
    raise BenchmarkError(f"the simulated server did not start: {error.strip() or 'it said nothing'}")
