"""Finds the Python that every environment here is made with."""

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .errors import ToolchainError
from .process import ask
from .versions import versions

_WHICH = "import sys; print('%d.%d' % sys.version_info[:2], sys._base_executable)"


def wanted() -> str:
    """The wanted `major.minor`."""
    return versions()["python"]["version"]


@cache
def find_python() -> Path:
    """An interpreter of the wanted version that really runs, never one of a virtual environment.

    Order: PATH, pyenv's versions, what uv knows. Raises ToolchainError.
    """
    for candidate in _candidates():
        base = _base_interpreter(candidate)
        if base is not None:
            return base
    raise ToolchainError(
        "python",
        f"no Python {wanted()} on PATH, under pyenv or known to uv",
        f"install it: `apt-get install python{wanted()}-venv`, `pyenv install {wanted()}` or `uv python install`",
    )


def _candidates() -> Iterator[Path]:
    name = f"python{wanted()}"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder and (Path(folder) / name).exists():
            yield Path(folder) / name
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{wanted()}*/bin/{name}"), reverse=True)
    uv = shutil.which("uv")
    known = ask([uv, "python", "find", "--no-python-downloads", wanted()]) if uv else None
    if known:
        yield Path(known)


def _base_interpreter(candidate: Path) -> Path | None:
    # A pyenv shim exists for every version that was ever installed, and fails unless that version is selected: ask it.
    answer = ask([candidate, "-I", "-c", _WHICH])
    if answer is None:
        return None
    version, _, base = answer.partition(" ")
    return Path(base) if version == wanted() else None
