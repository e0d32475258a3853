"""The Python environments kept in the cache: what Ray's replicas run in, and the load engine.

Each lies in `<cache>/envs/<name>-<key>`; the key comes from its requirement file and the Python version, so checkouts
that pin the same share one, and a changed pin makes a new one beside the old.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .cache import cache_root, content_key, exclusive
from .console import Stopwatch, duration, home_relative, say
from .errors import ToolchainError
from .find_python import find_python, wanted
from .find_uv import ensure_uv
from .process import work
from .versions import ROOT

COMPLETE = ".complete"
"""Written last: a folder without it is what an interrupted run left, and is made again."""


@dataclass(frozen=True)
class Environment:
    """A named environment: how large it gets (bytes) and how long it usually takes (seconds), both measured here."""

    name: str
    size: int
    usual_s: int

    @property
    def requirements(self) -> Path:
        """Its hash-pinned requirement file."""
        return ROOT / "requirements" / f"{self.name}.txt"


# Sizes: `du` of finished environments. Times: 2 cores, nothing downloaded before.
ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        Environment("runtime-cpu", size=9 * 1024**3, usual_s=207),
        Environment("benchmark", size=1200 * 1024**2, usual_s=30),
        Environment("ucx", size=200 * 1024**2, usual_s=5),
    )
}


def directory(name: str) -> Path:
    """Where this checkout's version of an environment lies or will lie."""
    key = content_key([ENVIRONMENTS[name].requirements.read_bytes(), wanted()])
    return cache_root() / "envs" / f"{name}-{key}"


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a finished environment whose interpreter still exists."""
    return (folder / COMPLETE).exists() and (folder / "bin" / "python").exists()


def interpreter(name: str) -> Path:
    """The `bin/python` of a finished environment. Raises ToolchainError when it has not been made."""
    folder = directory(name)
    if not is_complete(folder):
        raise ToolchainError(name, f"no environment in {home_relative(folder)}", "run `make toolchain`")
    return folder / "bin" / "python"


def ensure(name: str) -> Path:
    """Make an environment unless it is there; returns its folder. Safe when two runs race."""
    environment, folder = ENVIRONMENTS[name], directory(name)
    if not is_complete(folder):
        with exclusive(name, folder.name):
            if not is_complete(folder):
                _make(environment, folder)
                return folder
    say(name, f"found in {home_relative(folder)}")
    return folder


def _make(environment: Environment, folder: Path) -> None:
    name, watch = environment.name, Stopwatch()
    if folder.exists():
        say(name, f"an earlier run left {home_relative(folder)} unfinished; making it again")
        shutil.rmtree(folder)
    free = shutil.disk_usage(cache_root()).free
    if free < environment.size:
        need = f"{environment.size / 1024**3:.1f} GiB"
        raise ToolchainError(
            name,
            f"needs {need}, and {cache_root()} has {free / 1024**3:.1f} GiB free",
            "make room or set PD_MI325X_CACHE to another disk",
        )
    say(name, f"making {home_relative(folder)}; usually {duration(environment.usual_s)} with nothing downloaded")
    log = cache_root() / "log" / f"{folder.name}.log"
    log.unlink(missing_ok=True)
    sync(name, folder, environment.requirements, log, new=True)
    (folder / COMPLETE).touch()
    say(name, f"made in {watch}")


def sync(name: str, folder: Path, requirements: Path, log: Path, *, new: bool) -> None:
    """Bring an environment to exactly a requirement file, bytecode included; `new` makes the folder first."""
    uv = ensure_uv()
    total = requirements.read_text(encoding="utf-8").count("==")

    def progress(elapsed: float) -> str:
        # uv downloads everything before it installs anything, so the count stays at 0 for most of a cold run.
        installed = sum(1 for _ in folder.glob("lib/python*/site-packages/*.dist-info"))
        stage = "downloading" if installed == 0 else "installing" if installed < total else "compiling bytecode"
        return f"{stage}, {installed}/{total} packages, {duration(elapsed)}"

    def run(*arguments: str | Path) -> None:
        work(name, [uv, *arguments], log=log, progress=progress)

    if new:
        run("venv", "--quiet", "--clear", "--python", find_python(), folder)
    # Bytecode now: replicas start together, and each would compile 9 GB of packages for itself.
    options: Sequence[str] = ("--require-hashes", "--compile-bytecode")
    run("pip", "sync", *options, "--python", folder / "bin" / "python", requirements)
