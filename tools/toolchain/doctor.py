"""`make doctor`: what was found where, what is missing, and what to do about it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import (
    checkout,
    chromium,
    control_plane,
    debian_package,
    environments,
    go_programs,
    image_builders,
    kubernetes_provider,
    pulumi_cli,
    tcmalloc,
)
from .cache import cache_root
from .console import home_relative
from .errors import ToolchainError
from .find_python import find_python, wanted
from .find_uv import find_uv
from .process import ask
from .versions import at_least, release, versions

OK, MISSING, LATER, LOW, OPTIONAL, OTHER = "ok", "MISSING", "not made yet", "low", "not there", "unknown version"
MAKE = "make toolchain"
MAKE_CLUSTER = "make toolchain-cluster"
_CHROMIUM = "install chromium or Google Chrome, and fonts-liberation (only for tests and pictures of the report)"
GIB = 1024**3
# The local stack (prefill, decode, Ray): 6 to 7 GiB measured.
MEMORY_NEEDED = 7 * GIB


@dataclass(frozen=True)
class Finding:
    """One row. Only MISSING fails: what this repository makes by itself is `not made yet`."""

    item: str
    found: str = "-"
    version: str = "-"
    needed: str = "-"
    status: str = OK
    fix: str = ""


def examine() -> list[Finding]:
    """Every row of the table. Makes nothing, starts nothing that stays."""
    checks: list[Callable[[], Finding]] = [
        lambda: _program("git", "any", "install git"),
        lambda: _program("make", "any", "install make"),
        _python,
        _uv,
        _go,
        _pulumi,
        _language_host,
        _kubernetes_provider,
        _control_plane,
        _image_builders,
        _venv,
        *(lambda name=name: _environment(name) for name in environments.ENVIRONMENTS),
        _tcmalloc,
        _chromium,
        _disk,
        _memory,
    ]
    return [check() for check in checks]


def table(findings: list[Finding]) -> str:
    """The rows in aligned columns under a heading."""
    rows = [("item", "found", "version", "needed", "status", "fix")]
    rows += [(row.item, row.found, row.version, row.needed, row.status, row.fix) for row in findings]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _program(name: str, needed: str, fix: str) -> Finding:
    place = shutil.which(name)
    if place is None:
        return Finding(name, needed=needed, status=MISSING, fix=fix)
    return Finding(name, home_relative(Path(place)), _short(ask([place, "--version"])), needed)


def _python() -> Finding:
    try:
        place = find_python()
    except ToolchainError as error:
        return Finding("python", needed=wanted(), status=MISSING, fix=error.fix)
    return Finding("python", home_relative(place), _short(ask([place, "--version"])), wanted())


def _uv() -> Finding:
    place = find_uv()
    if place is None:
        return Finding("uv", needed="any", status=LATER, fix=MAKE)
    return Finding("uv", home_relative(place), _short(ask([place, "--version"])), "any")


def _go() -> Finding:
    needed = go_programs.pulumi().go_minimum
    have_pulumi = (pulumi_cli.installed() or pulumi_cli.built()) is not None
    if have_pulumi and kubernetes_provider.find() and not control_plane.missing():
        return Finding("go", needed="not needed: what it builds is there")
    place = shutil.which("go")
    # Asked inside the module: there Go may switch to the version that go.mod names.
    version = _short(ask(["go", "version"], cwd=pulumi_cli.MODULE_DIR))
    if place is not None and at_least(version, needed):
        return Finding("go", home_relative(Path(place)), version, needed)
    if have_pulumi:
        # Whether the provider can be downloaded shows only when it is tried; the control plane is for tests.
        fix = f"for `{MAKE_CLUSTER}`, and where Pulumi cannot download its providers: Go {needed} (go.dev/dl)"
        return Finding("go", place or "-", version, needed, OPTIONAL, fix)
    fix = f"install Pulumi (pulumi.com/docs/install) or Go {needed} (go.dev/dl)"
    return Finding("go", place or "-", version, needed, MISSING, fix)


def _pulumi() -> Finding:
    minimum = versions()["pulumi"]["minimum"]
    place = pulumi_cli.installed() or pulumi_cli.built()
    if place is None:
        return Finding("pulumi", needed=minimum, status=LATER, fix=f"{MAKE} (compiles it once, 6 to 9 min on 2 cores)")
    return Finding("pulumi", home_relative(place), _short(pulumi_cli.version_of(place)), minimum)


def _language_host() -> Finding:
    official = pulumi_cli.official_host()
    if official:
        return Finding("language host", home_relative(official), "official", "any")
    stand_in = checkout.VENV / "bin" / "pulumi-language-python"
    if not stand_in.exists():
        return Finding("language host", needed="any", status=LATER, fix=MAKE)
    return Finding("language host", home_relative(stand_in), "ours", "any")


def _kubernetes_provider() -> Finding:
    item, needed = "kubernetes provider", versions()["pulumi_kubernetes"]["version"]
    for place in kubernetes_provider.on_path():
        fix = "remove it from PATH: Pulumi prefers it, whatever its version"
        return Finding(item, home_relative(place), "-", needed, OTHER, fix)
    place = kubernetes_provider.find()
    if place is None:
        fix = f"{MAKE} (downloads it; where that fails, compiles it once, 7 to 14 min on 2 cores)"
        return Finding(item, needed=needed, status=LATER, fix=fix)
    origin = "ours" if kubernetes_provider.is_ours(place) else "published"
    return Finding(item, home_relative(place.parent), origin, needed)


def _control_plane() -> Finding:
    missing = control_plane.missing()
    needed = f"{len(control_plane.NAMES)} programs"
    if missing:
        names = ", ".join(program.name for program in missing)
        fix = f"{MAKE_CLUSTER} (compiles {names}; only for `make rehearse` and `make test`)"
        made = len(control_plane.NAMES) - len(missing)
        return Finding("control plane", f"{made} of {needed}" if made else "-", "-", needed, LATER, fix)
    kubernetes = versions()["kubernetes"]["version"]
    return Finding("control plane", home_relative(control_plane.folder()), kubernetes, needed)


def _image_builders() -> Finding:
    needed, lacking = f"{len(image_builders.NAMES)} programs", image_builders.missing()
    if lacking:
        fix = "make test-images, as root (compiles BuildKit and buildx; only for tests of the images)"
        return Finding("image builders", needed=needed, status=LATER, fix=fix)
    return Finding("image builders", image_builders.told(), versions()["buildkit"]["version"], needed)


def _venv() -> Finding:
    if not checkout.is_current():
        status = "out of date" if checkout.VENV.exists() else LATER
        return Finding("tools", needed="requirements/tools.txt", status=status, fix=MAKE)
    return Finding("tools", home_relative(checkout.VENV), needed="requirements/tools.txt")


def _environment(name: str) -> Finding:
    folder = environments.directory(name)
    needed = f"requirements/{name}.txt"
    if not environments.is_complete(folder):
        return Finding(name, needed=needed, status=LATER, fix=MAKE)
    return Finding(name, home_relative(folder), needed=needed)


def _tcmalloc() -> Finding:
    try:
        place = tcmalloc.locate()
    except ToolchainError as error:
        status, fix = (LATER, MAKE) if debian_package.can_install() else (MISSING, error.fix)
        return Finding("tcmalloc", needed=versions()["libtcmalloc"]["library"], status=status, fix=fix)
    return Finding("tcmalloc", str(place), needed=place.name)


def _chromium() -> Finding:
    place = chromium.find()
    if place is None or chromium.missing():
        status, fix = (LATER, "make test-unit") if debian_package.can_install() else (OPTIONAL, _CHROMIUM)
        return Finding("chromium", needed="any", status=status, fix=fix)
    return Finding("chromium", str(place), needed="any")


def _disk() -> Finding:
    known = environments.ENVIRONMENTS.values()
    needed = sum(one.size for one in known if not environments.is_complete(environments.directory(one.name)))
    free = shutil.disk_usage(cache_root()).free
    return _amount("disk", home_relative(cache_root()), free, needed, "set PD_MI325X_CACHE to a larger disk")


def _memory() -> Finding:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), 0)
    fix = "end other programs before the local stack starts"
    return _amount("memory", "available", kilobytes * 1024, MEMORY_NEEDED, fix)


def _amount(item: str, place: str, have: int, needed: int, fix: str) -> Finding:
    enough = have >= needed
    amounts = f"{have / GIB:.1f} GiB", f"{needed / GIB:.1f} GiB"
    return Finding(item, place, *amounts, OK if enough else LOW, "" if enough else fix)


def _short(text: str | None) -> str:
    numbers = release(text or "")
    return ".".join(map(str, numbers)) if numbers else "-"
