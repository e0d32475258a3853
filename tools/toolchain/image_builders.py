"""What builds images without a Docker daemon: BuildKit, buildx, runc, debootstrap. For `make test-images` only."""

import os
import shutil
from pathlib import Path

from . import debian_package, go_install, go_programs
from .cache import cache_root, exclusive
from .console import home_relative, say
from .errors import ToolchainError
from .go_build import GoProgram

ITEM = "image-builders"
_PACKAGES = ("runc", "debootstrap")  # their programs have their names
NAMES = (*(program.name for program in go_programs.image_builders()), *_PACKAGES)


def ensure() -> Path:
    """All of it, built or installed where needed; returns the cache's folder of programs. Raises ToolchainError."""
    if os.geteuid() != 0:
        raise ToolchainError(ITEM, "BuildKit without a Docker daemon needs root", "`make test-images` as root")
    lacking = missing()
    for program in lacking:
        if isinstance(program, GoProgram):
            go_install.ensure(program)
    if packages := [name for name in lacking if isinstance(name, str)]:
        if not debian_package.can_install():
            raise ToolchainError(ITEM, f"no {' and no '.join(packages)} on PATH", "install them, and start again")
        with exclusive(ITEM, ITEM):
            debian_package.install(ITEM, *packages)
    if not lacking:
        say(ITEM, f"found: {', '.join(NAMES)}")
    return cache_root() / "bin"


def missing() -> list[GoProgram | str]:
    """Programs that have to be built, and packages that have to be installed."""
    packages = [name for name in _PACKAGES if shutil.which(name) is None]
    return [*(program for program in go_programs.image_builders() if go_install.built(program) is None), *packages]


def find() -> Path | None:
    """The cache's folder of programs, where all are there."""
    return None if missing() else cache_root() / "bin"


def told() -> str:
    """Where they are, for people."""
    return home_relative(cache_root() / "bin")
