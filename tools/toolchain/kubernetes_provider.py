"""Pulumi's Kubernetes provider where Pulumi looks for it: the published one, else what is built here.

It goes among Pulumi's own plugins and not on PATH. From PATH, Pulumi takes a provider whatever its version, and warns
on every command (`getPluginInfoAndPath` of Pulumi's sdk/go/common/workspace/plugins.go).
"""

import os
import shutil
from pathlib import Path

from . import go_install, go_programs, pulumi_cli
from .cache import cache_root, exclusive
from .console import duration, home_relative, say
from .errors import ToolchainError
from .find_on_path import find_on_path
from .go_build import build_key
from .process import work
from .shell_env import pulumi_home
from .versions import versions

ITEM = "kubernetes-provider"
BINARY = "pulumi-resource-kubernetes"
# 161 MB unpacked: enough at 0.6 MB/s. A connection that is slower, or hangs, loses to the build of 7 to 14 min.
DOWNLOAD_LIMIT_S = 300.0
_ORIGIN = "built-by-pd-mi325x"
"""A file beside a provider that was built here; it holds the build's key."""


def find() -> Path | None:
    """The pinned provider among the plugins of this user's Pulumi, unless it is a build of ours that is out of date."""
    folder = plugin_folder(pulumi_home())
    # Pulumi's own sign of an installation that has not finished.
    if not (folder / BINARY).exists() or _partial(folder).exists():
        return None
    origin = folder / _ORIGIN
    if origin.exists() and origin.read_text() != build_key(go_programs.kubernetes_provider()):
        return None
    return folder / BINARY


def is_ours(place: Path) -> bool:
    """Whether what `find` found was built here."""
    return (place.parent / _ORIGIN).exists()


def ensure() -> Path:
    """The pinned provider among the user's plugins: downloaded by Pulumi, or built where that is not possible."""
    for place in on_path():
        say(ITEM, f"Pulumi will take {home_relative(place)}, whatever its version; remove it from PATH")
    place = find()
    if place is None:
        with exclusive(ITEM, ITEM):
            place = find() or _make()
    say(ITEM, f"found {'ours' if is_ours(place) else 'the published one'} in {home_relative(place.parent)}")
    return place


def on_path() -> list[Path]:
    """Providers of another origin on PATH. A provider does not say its version."""
    return find_on_path(BINARY)


def put_into(home: Path) -> Path:
    """Give another Pulumi home, such as a test's, the provider that this checkout uses; returns the plugin's folder.

    Hard links where possible: it takes neither time nor room.
    """
    found = find() or go_install.built(go_programs.kubernetes_provider())
    if found is None:
        raise ToolchainError(ITEM, "not there or out of date", "run `make toolchain`")
    folder = plugin_folder(home)
    # Pulumi takes no folder for a plugin whose name starts with a dot.
    scratch = folder.with_name(f".{folder.name}-{os.getpid()}")
    scratch.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copytree(found.parent, scratch, copy_function=_link)
        if found.is_relative_to(cache_root()):
            (scratch / _ORIGIN).write_text(build_key(go_programs.kubernetes_provider()))
        shutil.rmtree(folder, ignore_errors=True)
        scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _partial(folder).unlink(missing_ok=True)
    return folder


def plugin_folder(home: Path) -> Path:
    """Where a Pulumi with this home looks for the pinned provider."""
    return home / "plugins" / f"resource-kubernetes-v{versions()['pulumi_kubernetes']['version']}"


def _make() -> Path:
    if go_install.built(go_programs.kubernetes_provider()) is None:
        _download()
        place = find()
        if place is not None:
            return place
        go_install.ensure(go_programs.kubernetes_provider())
    return put_into(pulumi_home()) / BINARY


def _download() -> None:
    # Not `find`: a build of ours that is out of date would make Pulumi think that there is nothing to do.
    folder = plugin_folder(pulumi_home())
    if (folder / _ORIGIN).exists():
        shutil.rmtree(folder)
    pulumi = pulumi_cli.installed() or pulumi_cli.built() or pulumi_cli.ensure()
    version = versions()["pulumi_kubernetes"]["version"]
    say(ITEM, f"downloading {version} with Pulumi")
    log = cache_root() / "log" / f"{ITEM}-download.log"
    log.unlink(missing_ok=True)
    try:
        work(
            ITEM,
            # Pulumi tries five times, and without a name server or a route that takes 3 s.
            [pulumi, "plugin", "install", "resource", "kubernetes", f"v{version}", "--exact"],
            log=log,
            progress=lambda elapsed: f"downloading, {duration(elapsed)}",
            cwd=cache_root(),  # in a project, Pulumi would look at its Pulumi.yaml
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            limit_s=DOWNLOAD_LIMIT_S,
        )
    except ToolchainError as error:
        say(ITEM, f"cannot be downloaded here ({_why(log) or error.problem}); building it instead")


def _why(log: Path) -> str:
    """The reason in Pulumi's warnings about each attempt; its error at the end only counts them."""
    lines = log.read_text(errors="replace").splitlines()
    return next((reason for line in reversed(lines) if (reason := line.partition("downloading plugin: ")[2])), "")


def _partial(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.partial")


def _link(source: str, destination: str) -> None:
    try:
        os.link(source, destination)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, destination)
