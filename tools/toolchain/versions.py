"""Reads versions.toml and compares versions."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
"""The checkout this file belongs to."""


@cache
def versions() -> dict[str, Any]:
    """The parsed versions.toml: table name -> {version, reason, ...}."""
    return tomllib.loads((ROOT / "versions.toml").read_text(encoding="utf-8"))


def release(text: str) -> tuple[int, int, int] | None:
    """The first `major.minor[.patch]` in a text such as `v9.8.7` or `go version go1.99.1 linux/amd64`."""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    if match is None:
        return None
    major, minor, patch = match.groups(default="0")
    return int(major), int(minor), int(patch)


def at_least(found: str, minimum: str) -> bool:
    """Whether a version text is `minimum` or later; a text without a version is not."""
    have, want = release(found), release(minimum)
    return have is not None and want is not None and have >= want
