"""Builds one program from a pinned Go module, with progress. Go's own build cache makes it resumable."""

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .cache import cache_root, content_key
from .console import duration, home_relative, say
from .errors import ToolchainError
from .process import ask, work
from .versions import at_least

_STALE = "{{.ImportPath}} {{.Stale}} {{.StaleReason}}"
# What `go list` says of a main package that only has to be linked again.
_ONLY_LINK = "not installed but available in build cache"


@dataclass(frozen=True)
class Asset:
    """What a program needs beside it from its module: files that match the patterns, joined with `---` lines.

    A name that ends with `/` is a folder that gets the files one by one. Kustomization files are left out.
    """

    name: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class GoProgram:
    """A main package of a module that is pinned by go.mod and go.sum in `module_dir`."""

    name: str
    item: str
    version: str
    module_dir: Path
    package: str
    usual_time: str
    """How long a build takes with nothing in Go's caches, measured on 2 cores."""
    variables: tuple[str, ...] = ()
    """`package.name=value` that the linker sets."""
    sources: tuple[str, ...] = ()
    """Source files of our own in `module_dir`."""
    module: str = ""
    assets: tuple[Asset, ...] = ()
    instead: str = ""
    """What a user without Go can install instead."""

    def flags(self) -> list[str]:
        """Flags that change the binary; without debug information it is a third smaller."""
        return ["-trimpath", "-ldflags", " ".join(["-s -w", *(f"-X {variable}" for variable in self.variables)])]

    def environment(self) -> dict[str, str]:
        """Without cgo no C compiler is needed."""
        return {**os.environ, "CGO_ENABLED": "0"}

    @property
    def go_minimum(self) -> str:
        """The oldest Go that builds it: the `go` line of its go.mod."""
        text = (self.module_dir / "go.mod").read_text(encoding="utf-8")
        return next(line.split()[1] for line in text.splitlines() if line.startswith("go "))


def go_version(program: GoProgram) -> str | None:
    """What `go version` says inside the module (a newer Go may be chosen there); None without a Go."""
    return ask(["go", "version"], cwd=program.module_dir)


def build_key(program: GoProgram) -> str:
    """Names the binary: module files, flags, platform.

    The Go version is left out on purpose: go.mod sets the oldest one, and a binary must be found where Go is not.
    """
    files = [(program.module_dir / name).read_bytes() for name in ("go.mod", "go.sum", *program.sources)]
    assets = [repr(asset) for asset in program.assets]
    return content_key([*files, *program.flags(), program.package, platform.system(), platform.machine(), *assets])


def log_file(program: GoProgram) -> Path:
    """One log for each binary, not for each attempt's scratch folder."""
    return cache_root() / "log" / f"{program.name}-{build_key(program)}.log"


def build(program: GoProgram, target: Path) -> None:
    """Compile to `target`. Raises ToolchainError without a sufficient Go, or with the compiler's last words."""
    _require_go(program)
    log = log_file(program)
    log.unlink(missing_ok=True)
    _download(program, log)
    total, remaining = _count(program, log)
    say(program.item, f"{total} packages, {remaining} to compile, the others are in Go's build cache")
    command = ["go", "build", "-v", *program.flags(), "-o", str(target), program.package]
    before = _packages_named(log)

    def progress(elapsed: float) -> str:
        compiled = min(_packages_named(log) - before, remaining)
        if compiled >= remaining:
            return f"{total}/{total} packages, linking, {duration(elapsed)}"
        left = f", about {duration(elapsed / compiled * (remaining - compiled))} left" if compiled else ""
        return f"{total - remaining + compiled}/{total} packages, {duration(elapsed)}{left}"

    work(program.item, command, log=log, progress=progress, cwd=program.module_dir, env=program.environment())


def _require_go(program: GoProgram) -> None:
    version = go_version(program)
    if version is None or not at_least(version, program.go_minimum):
        found = f"only {version.split()[2]}" if version else "no Go"
        needed = program.go_minimum
        raise ToolchainError(
            program.item,
            f"none that suffices is here, and PATH has {found} to build it with ({needed} is needed)",
            f"install {f'{program.instead} or ' if program.instead else ''}Go {needed} or later (go.dev/dl)",
        )


def _download(program: GoProgram, log: Path) -> None:
    # Listing the dependencies fetches exactly the modules that the build needs; `go mod download` fetches far more.
    modules = len(re.findall(r"^\s+\S+ v\S+", (program.module_dir / "go.mod").read_text(), re.MULTILINE))

    def progress(elapsed: float) -> str:
        fetched = log.read_text(errors="replace").count("go: downloading")
        return f"{fetched} of at most {modules} modules downloaded, {duration(elapsed)}"

    command = ["go", "list", "-deps", "-f", "{{if eq .ImportPath `unsafe`}}{{end}}", program.package]
    work(program.item, command, log=log, progress=progress, cwd=program.module_dir, env=program.environment())


def _count(program: GoProgram, log: Path) -> tuple[int, int]:
    """Packages in all, and those that Go's build cache lacks."""
    command = ["go", "list", *program.flags(), "-deps", "-f", _STALE, program.package]
    result = subprocess.run(
        command, cwd=program.module_dir, env=program.environment(), capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        last = (result.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise ToolchainError(program.item, f"`go list` failed: {last}", f"see {home_relative(log)}")
    lines = result.stdout.splitlines()
    stale = [line for line in lines if line.split()[1] == "true" and not line.endswith(_ONLY_LINK)]
    return len(lines), len(stale)


def _packages_named(log: Path) -> int:
    # `go build -v` names each package when it is compiled; everything else it says starts with "go: " or "#".
    lines = log.read_text(errors="replace").splitlines()
    return sum(1 for line in lines if line and not line.startswith(("go: ", "#")))
