"""Finds programs that somebody installed, as opposed to what is made here."""

import os
from pathlib import Path

from .cache import cache_root


def find_on_path(name: str) -> list[Path]:
    """Executables of that name on PATH, without those that this package put into a `.venv` or built."""
    found: list[Path] = []
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        place = Path(folder) / name
        if folder and place.is_file() and os.access(place, os.X_OK) and not _ours(place):
            found.append(place)
    return found


def _ours(place: Path) -> bool:
    beside_python = (place.parent.parent / "pyvenv.cfg").exists()
    return beside_python or place.resolve().is_relative_to(cache_root())
