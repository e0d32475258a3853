"""The one exception a user of this package sees as a line of text."""

from __future__ import annotations

from pydantic import ValidationError


class BenchmarkError(Exception):
    """Something the user can put right. The message is one line: what, where, and what to do."""


def first_problem(error: ValidationError) -> str:
    """The first complaint of a pydantic error as `key: complaint` (and how many more there are)."""
    problems = error.errors()
    head = problems[0]
    key = ".".join(str(part) for part in head["loc"]) or "(whole file)"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{key}: {head['msg'].removeprefix('Value error, ')}{more}"
