"""How a command ends: its exit codes, and one line for what the user can put right."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

USABLE = 0
TO_PUT_RIGHT = 1  # by the user; 2 is typer's own for a wrong command line
UNUSABLE = 3  # measured, but a fault makes the numbers unusable
INTERRUPTED = 130  # as shells say it: 128 + SIGINT


@contextmanager
def one_line_endings(*problems: type[Exception]) -> Iterator[None]:
    """One line on standard error and exit code 1 for `problems` and failed writes; no traceback for an interruption."""
    try:
        yield
    except problems as error:
        fail(str(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        nobody_listens()
        sys.exit(TO_PUT_RIGHT)
    except OSError as error:  # a full disk, a file taken away
        fail(f"{error.strerror}: {error.filename or 'while writing'}")


def fail(problem: str, code: int = TO_PUT_RIGHT) -> None:
    """End the process with this line."""
    print(f"error: {problem}", file=sys.stderr)
    sys.exit(code)


def nobody_listens() -> None:
    """Whoever read standard output is gone: what Python still writes there at its end must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
