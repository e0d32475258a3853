"""The Pulumi CLI and its Python language host: the installed ones where they suffice, else what is built here."""

import json
import os
import shutil
from functools import cache
from pathlib import Path

from .cache import cache_root, exclusive
from .console import Stopwatch, home_relative, say
from .errors import ToolchainError
from .go_build import GoProgram, build, build_key
from .process import ask
from .versions import ROOT, at_least, versions

ITEM = "pulumi"
MODULE_DIR = ROOT / "tools" / "pulumi"
SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
_EXECUTOR = "pulumi-language-python-exec"


@cache
def found_on_path() -> list[tuple[Path, str]]:
    """Every pulumi on PATH that somebody installed, with its version ('' when it does not say), in PATH order."""
    return [(place, version_of(place)) for place in _on_path("pulumi")]


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
    return _target() if _target().exists() else None


def ensure() -> Path:
    """A sufficient pulumi: the installed one, the one in the cache, or a new build."""
    present = installed()
    if present:
        say(ITEM, f"found {version_of(present)} at {home_relative(present)}")
        return present
    for place, version in found_on_path():
        minimum = versions()["pulumi"]["minimum"]
        say(ITEM, f"{home_relative(place)} is {version or 'of unknown version'}, {minimum} is needed")
    target = _target()
    if not target.exists():
        with exclusive(ITEM, target.parent.name):
            if not target.exists():
                _build(target)
                return target
    say(ITEM, f"found in {home_relative(target.parent)}")
    return target


def official_host() -> Path | None:
    """The Python language host of an installed Pulumi: on PATH, or beside the pulumi that is used."""
    for place in _on_path("pulumi-language-python"):
        return place
    pulumi = installed()
    beside = pulumi.resolve().parent / "pulumi-language-python" if pulumi else None
    return beside if beside and beside.exists() else None


def program_executor() -> Path:
    """Pulumi's own program runner for Python, from the same Go module as the CLI, copied into the cache."""
    version = _required_version(SDK_MODULE)
    place = cache_root() / "bin" / f"pulumi-python-{version}" / _EXECUTOR
    if not place.exists():
        with exclusive(ITEM, place.parent.name):
            _fetch_executor(version, place)
    return place


def _program() -> GoProgram:
    pins = versions()["pulumi"]
    return GoProgram(
        item=ITEM,
        module_dir=MODULE_DIR,
        package=pins["command"],
        linker_flags=f"-s -w -X {pins['version_variable']}=v{pins['version']}",
        go_minimum=pins["go_minimum"],
    )


def _target() -> Path:
    return cache_root() / "bin" / f"pulumi-{build_key(_program())}" / "pulumi"


def _build(target: Path) -> None:
    watch = Stopwatch()
    # Measured on 2 cores with nothing in Go's caches: 64 s of downloads and 468 s of compilation on a busy machine,
    # 30 s and 324 s on an idle one.
    say(ITEM, f"none installed; building {versions()['pulumi']['version']}, about 6 to 9 min on 2 cores, once")
    scratch = target.parent.with_name(f"{target.parent.name}.{os.getpid()}")
    try:
        build(_program(), scratch / target.name)
        scratch.replace(target.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say(ITEM, f"built in {watch}: {home_relative(target)}")


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


def _on_path(name: str) -> list[Path]:
    """Executables of that name on PATH, without those that this package put into a `.venv` or built."""
    found: list[Path] = []
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        place = Path(folder) / name
        if folder and place.is_file() and os.access(place, os.X_OK) and not _ours(place):
            found.append(place)
    return found


def _ours(place: Path) -> bool:
    beside_python = (place.parent.parent / "pyvenv.cfg").exists()
    return beside_python or place.resolve().is_relative_to(cache_root())
