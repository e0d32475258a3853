"""Keeps built Go programs in the cache: `<cache>/bin/<name>-<key>/<name>`, with the files they need beside them."""

import os
import shutil
from pathlib import Path

from .cache import cache_root, exclusive
from .console import Stopwatch, home_relative, say
from .errors import ToolchainError
from .go_build import Asset, GoProgram, build, build_key
from .process import ask


def target(program: GoProgram) -> Path:
    """Where this checkout's version of a program lies or will lie."""
    return cache_root() / "bin" / f"{program.name}-{build_key(program)}" / program.name


def built(program: GoProgram) -> Path | None:
    """The binary that this checkout's module files give, when it has been built."""
    place = target(program)
    return place if place.exists() else None


def ensure(program: GoProgram) -> Path:
    """The program from the cache, built first when it is not there. Safe when two runs race."""
    place = target(program)
    if not place.exists():
        with exclusive(program.item, place.parent.name):
            if not place.exists():
                _make(program, place)
                return place
    say(program.item, f"found in {home_relative(place.parent)}")
    return place


def _make(program: GoProgram, place: Path) -> None:
    watch = Stopwatch()
    say(program.item, f"building {program.version}, once; usually {program.usual_time} with nothing compiled before")
    # Renamed when all of it is there: a folder of the final name is never half a program.
    scratch = place.parent.with_name(f"{place.parent.name}.{os.getpid()}")
    try:
        build(program, scratch / place.name)
        _copy_assets(program, scratch)
        # The program is not in it, or nothing would be built, and this run has the lock: somebody deleted half of it.
        shutil.rmtree(place.parent, ignore_errors=True)
        scratch.replace(place.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say(program.item, f"built in {watch}: {home_relative(place)}")


def _copy_assets(program: GoProgram, folder: Path) -> None:
    if not program.assets:
        return
    command = ["go", "list", "-m", "-f", "{{.Dir}}", program.module]
    module = ask(command, cwd=program.module_dir, env=program.environment())
    if not module:
        where = home_relative(program.module_dir)
        raise ToolchainError(program.item, f"`go list -m {program.module}` failed", f"run it in {where} to see why")
    for asset in program.assets:
        sources = _sources(program, Path(module), asset)
        if asset.name.endswith("/"):
            (folder / asset.name).mkdir()
            for source in sources:
                # Not its mode: Go's module cache is read-only.
                shutil.copyfile(source, folder / asset.name / source.name)
        else:
            (folder / asset.name).write_bytes(b"---\n".join(_whole_lines(source) for source in sources))


def _sources(program: GoProgram, module: Path, asset: Asset) -> list[Path]:
    found: list[Path] = []
    for pattern in asset.patterns:
        matches = sorted(path for path in module.glob(pattern) if path.name != "kustomization.yaml")
        if not matches:
            problem = f"{program.module} has no {pattern} for {asset.name}"
            raise ToolchainError(program.item, problem, "correct tools/toolchain/go_programs.py for this version")
        found += matches
    return found


def _whole_lines(source: Path) -> bytes:
    content = source.read_bytes()
    return content if content.endswith(b"\n") else content + b"\n"
