"""Reads versions.toml, the one place where a version, commit or digest stands."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

VERSIONS_FILE = Path(__file__).resolve().parent.parent / "versions.toml"


@cache
def versions() -> dict[str, Any]:
    """The parsed versions.toml: table name -> {version, reason, ...}."""
    return tomllib.loads(VERSIONS_FILE.read_text())


def platform_versions(platform: str) -> dict[str, str]:
    """Versions of the deployed stack on one platform: component -> version or commit, without the reasons."""
    table: dict[str, Any] = versions()["platform"][platform]
    return {name: str(value) for name, value in table.items() if name != "reason" and isinstance(value, str)}
