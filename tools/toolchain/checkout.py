"""The checkout's own `.venv`: the tools, the project itself (editable), and whatever of Pulumi is not installed."""

import filecmp
import json
import os
import shlex
import shutil
import tomllib
from pathlib import Path

from . import pulumi_cli
from .cache import cache_root, content_key, exclusive
from .console import Stopwatch, say
from .environments import COMPLETE, sync
from .errors import ToolchainError
from .find_python import wanted
from .find_uv import ensure_uv
from .process import ask, work
from .versions import ROOT

ITEM = "tools"
VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements" / "tools.txt"


def state() -> str:
    """What `.venv` must have been made from to be current. The folder is part: a moved environment does not run."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # What the editable install is made from; the settings of ruff, pyright and pytest change nothing in `.venv`.
    installed = json.dumps([project["build-system"], project["project"], project["tool"]["hatch"]], sort_keys=True)
    return content_key([REQUIREMENTS.read_bytes(), installed, wanted(), str(VENV)])


def is_current() -> bool:
    """Whether `.venv` is finished and made from the present requirement file and project."""
    marker = VENV / COMPLETE
    return marker.exists() and marker.read_text() == state() and (VENV / "bin" / "python").exists()


def ensure() -> Path:
    """Make `.venv` or bring it up to date; returns it."""
    if not is_current():
        with exclusive(ITEM, f"checkout-{content_key([str(ROOT)])}"):
            if not is_current():
                _make()
                return VENV
    say(ITEM, "found in .venv")
    return VENV


def _make() -> None:
    watch = Stopwatch()
    (VENV / COMPLETE).unlink(missing_ok=True)
    new = not _usable()
    say(ITEM, "making .venv; usually under 30 s" if new else "bringing .venv up to date")
    log = cache_root() / "log" / f"checkout-{content_key([str(ROOT)])}.log"
    log.unlink(missing_ok=True)
    sync(ITEM, VENV, REQUIREMENTS, log, new=new)
    # Without build isolation, hatchling comes from the pinned file above instead of from wherever it is newest.
    install = [ensure_uv(), "pip", "install", "--no-deps", "--no-build-isolation", "--python", VENV / "bin" / "python"]
    work(ITEM, [*install, "--editable", ROOT], log=log, progress=lambda _: "installing the project itself")
    (VENV / COMPLETE).write_text(state())
    say(ITEM, f"made in {watch}")


def _usable() -> bool:
    """Whether a virtual environment of the right Python was made at this place, so that it can be changed."""
    question = "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix)"
    return ask([VENV / "bin" / "python", "-I", "-c", question]) == f"{wanted()} {VENV}"


def link_pulumi() -> None:
    """Put into `.venv/bin` what of Pulumi is not installed, and take out what has been installed since."""
    if not is_current():
        return
    binaries = VENV / "bin"
    _put(binaries / "pulumi", pulumi_cli.link_target())
    host_needed = pulumi_cli.official_host() is None
    _put(binaries / "pulumi-language-python-exec", pulumi_cli.program_executor() if host_needed else None)
    _write_launcher(binaries / "pulumi-language-python", host_needed)


def _put(place: Path, source: Path | None) -> None:
    """Make `place` the same file as `source`; remove it when there is no source.

    A hard link or a copy, not a symbolic link: Pulumi looks for its language host beside the file it was started from,
    links resolved, and warns on every command about a host that it finds elsewhere.
    """
    if source is None:
        place.unlink(missing_ok=True)
        return
    if place.exists() and not place.is_symlink() and filecmp.cmp(source, place):
        return
    temporary = _temporary(place)
    try:
        temporary.hardlink_to(source)
    except OSError:  # the cache lies on another file system
        shutil.copy2(source, temporary)
    temporary.replace(place)


def _write_launcher(place: Path, needed: bool) -> None:
    if not needed:
        place.unlink(missing_ok=True)
        return
    host = ROOT / "tools" / "pulumi" / "language_host.py"
    if not host.exists():
        raise ToolchainError(ITEM, f"{host} is missing", "restore it with `git checkout tools/pulumi`")
    # Isolated (-I): the host must not pick up the user's PYTHONPATH; the program it runs does.
    # A shell launcher because a `#!` line is cut off at 127 characters by older kernels.
    command = f"exec {shlex.quote(str(VENV / 'bin' / 'python'))} -I {shlex.quote(str(host))}"
    text = f'#!/bin/sh\n{command} "$@"\n'
    if place.exists() and place.read_text() == text:
        return
    temporary = _temporary(place)
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(place)


def _temporary(place: Path) -> Path:
    return place.with_name(f".{place.name}-{os.getpid()}")
