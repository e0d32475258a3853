"""Checksums of the files that a run's numbers are judged by, written beside them: sums.json.

They show what an accident or an edit changed later, not what somebody changed who wrote the sums anew too.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

SUMS = "sums.json"
_SUMS = TypeAdapter(dict[str, str])


def write_atomically(path: Path, text: str) -> None:
    """Write a file that either is there whole or is not. Raises OSError, which names the file."""
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:  # of a full disk, for one, the system itself names none
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_kept(run: Path, name: str, text: str) -> None:
    """Write a file of a run, and its sum before it: a file that is there has its sum whenever a process ends."""
    sums = read_sums(run) or {}
    sums[name] = hashlib.sha256((text + "\n").encode()).hexdigest()
    _write(run, sums)
    write_atomically(run / name, text)


def forget(run: Path, name: str) -> None:
    """No longer expect a file that is to be made anew."""
    sums = read_sums(run) or {}
    if sums.pop(name, None) is not None:
        _write(run, sums)


def changed_since(run: Path) -> list[str]:
    """A line for each file with a sum that is missing or another now; empty where all are as they were."""
    lines: list[str] = []
    for name, sum_then in (read_sums(run) or {}).items():
        now = sha256_of(run / name)
        if now != sum_then:
            lines.append(f"{name} is {'missing' if now is None else 'changed since it was written'}")
    return lines


def read_sums(run: Path) -> dict[str, str] | None:
    """What is expected of a run, by path in it; None where there is nothing, or nothing readable."""
    try:
        return _SUMS.validate_json((run / SUMS).read_bytes())
    except (OSError, ValidationError):
        return None


def sha256_of(path: Path) -> str | None:
    """In hexadecimal; None when there is no such file that can be read."""
    try:
        state = path.stat()
        return _sha256(path, state.st_size, state.st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=4096)  # a report and its terminal summary each ask for every file
def _sha256(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(run: Path, sums: dict[str, str]) -> None:
    write_atomically(run / SUMS, _SUMS.dump_json(sums, indent=2).decode())
