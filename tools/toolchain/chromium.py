"""The browser that opens reports as a reader does, for tests and for the screenshots in docs/images."""

from pathlib import Path

from . import debian_package
from .cache import exclusive
from .console import say
from .errors import ToolchainError
from .find_on_path import find_on_path

ITEM = "chromium"
_PACKAGE = "chromium"  # Debian's; Ubuntu's of that name is a snap, which runs in no container
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> Path | None:
    """The first Chromium or Chrome on PATH."""
    return next((place for name in _NAMES for place in find_on_path(name)), None)


def locate() -> Path:
    """Its path. Raises ToolchainError when there is none."""
    place = find()
    if place is None:
        fix = f"as root on Debian: `apt-get install {_PACKAGE}`; or put Google Chrome on PATH"
        raise ToolchainError(ITEM, "no Chromium and no Google Chrome on PATH", fix)
    return place


def ensure() -> Path:
    """The browser; installed from the distribution when missing and this is root on a Debian-like system."""
    if find() is None and debian_package.can_install():
        with exclusive(ITEM, ITEM):
            if find() is None:
                debian_package.install(ITEM, _PACKAGE)
                return locate()
    say(ITEM, f"found {locate()}")
    return locate()
