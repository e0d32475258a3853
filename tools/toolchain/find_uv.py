"""Finds uv, or installs the pinned one into the cache."""

import shutil
from pathlib import Path

from .cache import cache_root, exclusive
from .console import Stopwatch, duration, home_relative, say
from .errors import ToolchainError
from .find_python import find_python
from .process import work
from .versions import ROOT, versions

REQUIREMENTS = ROOT / "requirements" / "uv.txt"


def find_uv() -> Path | None:
    """The uv on PATH, else the one in the cache, else None."""
    on_path = shutil.which("uv")
    if on_path:
        return Path(on_path)
    cached = cache_folder() / "bin" / "uv"
    return cached if cached.exists() and (cache_folder() / ".complete").exists() else None


def ensure_uv() -> Path:
    """A uv that can be run; installed with pip when there is none. Raises ToolchainError."""
    found = find_uv()
    if found:
        return found
    with exclusive("uv", cache_folder().name):
        found = find_uv()
        if found:
            return found
        watch = Stopwatch()
        say("uv", f"not on PATH; installing {versions()['uv']['version']} into {home_relative(cache_folder())}")
        shutil.rmtree(cache_folder(), ignore_errors=True)
        log = cache_root() / "log" / "uv.log"
        log.unlink(missing_ok=True)
        work("uv", [find_python(), "-m", "venv", cache_folder()], log=log, progress=_progress)
        pip = [cache_folder() / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes"]
        work("uv", [*pip, "-r", REQUIREMENTS], log=log, progress=_progress)
        (cache_folder() / ".complete").touch()
        say("uv", f"installed in {watch}")
    found = find_uv()
    if not found:
        raise ToolchainError(
            "uv", f"pip put no uv into {cache_folder()}", f"see {home_relative(log)} or install uv on PATH"
        )
    return found


def cache_folder() -> Path:
    """Where the pinned uv lies or will lie."""
    return cache_root() / f"uv-{versions()['uv']['version']}"


def _progress(elapsed: float) -> str:
    return f"installing with pip, {duration(elapsed)}"
