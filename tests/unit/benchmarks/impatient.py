"""The benchmark's command line, which waits seconds and not minutes for counters to stand still."""

import sys

_PROGRAM = """
from functools import partial
from benchmarks import __main__, run
from benchmarks.metrics import Settling
run.execute = partial(run.execute, settling=Settling(quiet_s={quiet_s}, confirm_s=1.0, limit_s={limit_s}, poll_s=0.1))
__main__.main()
"""


def benchmarks(quiet_s: float, limit_s: float) -> list[str]:
    """`python -m benchmarks`, as far as its words go."""
    return [sys.executable, "-c", _PROGRAM.format(quiet_s=quiet_s, limit_s=limit_s)]
