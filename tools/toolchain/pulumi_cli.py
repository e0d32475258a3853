"""The Pulumi CLI and its Python language host: the installed ones where they suffice, else what is built here."""

import json
import os
import shutil
from functools import cache
from pathlib import Path

from . import go_install, go_programs
from .cache import cache_root, exclusive
from .console import home_relative, say
from .errors import ToolchainError
from .find_on_path import find_on_path
from .process import ask
from .versions import ROOT, at_least, versions

ITEM = "pulumi"
MODULE_DIR = ROOT / "tools" / "pulumi"
SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
_EXECUTOR = "pulumi-language-python-exec"


@cache
def found_on_path() -> list[tuple[Path, str]]:
    """Every pulumi on PATH that somebody installed, with its version ('' when it does not say), in PATH order."""
    return [(place, version_of(place)) for place in find_on_path("pulumi")]


def installed() -> Path | None:
    """The first sufficient pulumi on PATH that somebody installed."""
    minimum = versions()["pulumi"]["minimum"]
    return next((place for place, version in found_on_path() if at_least(version, minimum)), None)


def link_target() -> Path | None:
    """What `.venv/bin/pulumi` must lead to; None when a shell finds a sufficient one by itself."""
    present = installed()
    if present is None:
        return built()
    return None if present == found_on_path()[0][0] else present


def version_of(binary: Path) -> str:
    """What `pulumi version` says, such as `v3.200.0`; '' when it fails."""
    return ask([binary, "version"], env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}) or ""


def built() -> Path | None:
    """The binary that this checkout's module files give, when it has been built."""
    return go_install.built(go_programs.pulumi())


def ensure() -> Path:
    """A sufficient pulumi: the installed one, the one in the cache, or a new build."""
    present = installed()
    if present:
        say(ITEM, f"found {version_of(present)} at {home_relative(present)}")
        return present
    for place, version in found_on_path():
        minimum = versions()["pulumi"]["minimum"]
        say(ITEM, f"{home_relative(place)} is {version or 'of unknown version'}, {minimum} is needed")
    return go_install.ensure(go_programs.pulumi())


def official_host() -> Path | None:
    """The Python language host of an installed Pulumi: on PATH, or beside the pulumi that is used."""
    for place in find_on_path("pulumi-language-python"):
        return place
    pulumi = installed()
    beside = pulumi.resolve().parent / "pulumi-language-python" if pulumi else None
    return beside if beside and beside.exists() else None


def program_executor() -> Path:
    """Pulumi's own program runner for Python, from the same Go module as the CLI, copied into the cache."""
    place = executor_place()
    if not place.exists():
        with exclusive(ITEM, place.parent.name):
            _fetch_executor(_required_version(SDK_MODULE), place)
    return place


def executor_place() -> Path:
    """Where the program runner lies or will lie."""
    return cache_root() / "bin" / f"pulumi-python-{_required_version(SDK_MODULE)}" / _EXECUTOR


def _fetch_executor(version: str, place: Path) -> None:
    answer = ask(["go", "mod", "download", "-json", f"{SDK_MODULE}@{version}"], cwd=MODULE_DIR)
    if answer is None:
        raise ToolchainError(
            ITEM,
            f"no pulumi-language-python on PATH, and Go could not fetch {SDK_MODULE}@{version}",
            "install Pulumi from its release archive (pulumi.com/docs/install)",
        )
    source = Path(json.loads(answer)["Dir"]) / "python" / "cmd" / _EXECUTOR
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name}-{os.getpid()}")
    shutil.copyfile(source, temporary)
    temporary.chmod(0o755)
    temporary.replace(place)


def _required_version(module: str) -> str:
    for line in (MODULE_DIR / "go.mod").read_text(encoding="utf-8").splitlines():
        words = line.removeprefix("require").split()
        if words[:1] == [module]:
            return words[1]
    raise ToolchainError(ITEM, f"tools/pulumi/go.mod does not require {module}", "restore it with `git checkout`")
