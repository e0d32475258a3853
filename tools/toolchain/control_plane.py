"""A Kubernetes that runs as ordinary processes, for `make rehearse` and `make test`; deploying needs none of it."""

from pathlib import Path

from . import go_install, go_programs
from .cache import cache_root
from .console import home_relative, say
from .find_on_path import find_on_path
from .go_build import GoProgram
from .process import ask
from .versions import release, versions

ITEM = "cluster"
NAMES = tuple(program.name for program in go_programs.control_plane())


def ensure() -> Path:
    """All of its programs, built where needed; returns the cache's folder of programs."""
    lacking = missing()
    for program in lacking:
        go_install.ensure(program)
    if not lacking:
        say(ITEM, f"found in {home_relative(folder())}: {', '.join(NAMES)}")
    return folder()


def missing() -> list[GoProgram]:
    """Programs that have to be built."""
    return [program for program in go_programs.control_plane() if find(program.name) is None]


def find(name: str) -> Path | None:
    """One of its programs. An installed kubectl will do; the others are always ours: their versions belong together."""
    program = next(program for program in go_programs.control_plane() if program.name == name)
    return (installed_kubectl() if name == "kubectl" else None) or go_install.built(program)


def installed_kubectl() -> Path | None:
    """The first kubectl on PATH that supports the pinned Kubernetes: at most one minor version from it.

    Source: kubernetes.io/releases/version-skew-policy.
    """
    wanted = release(versions()["kubernetes"]["version"])
    for place in find_on_path("kubectl"):
        answer = release(ask([place, "version", "--client"]) or "")
        if answer and wanted and answer[0] == wanted[0] and abs(answer[1] - wanted[1]) <= 1:
            return place
    return None


def folder() -> Path:
    """Where its programs' folders lie."""
    return cache_root() / "bin"
