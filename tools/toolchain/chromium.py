"""The browser that opens reports as a reader does, for tests and for the screenshots in docs/images.

With it the font whose widths the charts are drawn for. With a wider one in its place, labels would be tested and
photographed where no reader who has Arial, or a font made to its measures, sees them.
"""

import subprocess
from pathlib import Path

from . import debian_package
from .cache import exclusive
from .console import say
from .errors import ToolchainError
from .find_on_path import find_on_path

ITEM = "chromium"
_PACKAGE = "chromium"  # Debian's; Ubuntu's of that name is a snap, which runs in no container
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FONT_PACKAGES = ("fonts-liberation", "fontconfig")
_FONT = "Liberation Sans"
# Of the same widths; fontconfig gives any of them for the others (30-metric-aliases.conf).
_FONTS = (_FONT, "Arial", "Arimo")


def find() -> Path | None:
    """The first Chromium or Chrome on PATH."""
    return next((place for name in _NAMES for place in find_on_path(name)), None)


def has_font() -> bool:
    """Whether a browser that asks for Arial is given a font of Arial's widths."""
    fc_match = next(iter(find_on_path("fc-match")), None)
    if fc_match is None:
        return False
    command = [str(fc_match), "--format=%{family}", _FONT]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.startswith(_FONTS)


def locate() -> Path:
    """Its path. Raises ToolchainError when there is none, or when the font is missing."""
    place = find()
    if place is None:
        fix = f"as root on Debian: `apt-get install {_PACKAGE}`; or put Google Chrome on PATH"
        raise ToolchainError(ITEM, "no Chromium and no Google Chrome on PATH", fix)
    if not has_font():
        fix = f"as root on Debian: `apt-get install {' '.join(_FONT_PACKAGES)}`"
        raise ToolchainError(ITEM, f"the font {_FONT}, or Arial, is missing (fc-match)", fix)
    return place


def missing() -> list[str]:
    """Debian packages of what is not here."""
    return [*([] if find() else [_PACKAGE]), *([] if has_font() else _FONT_PACKAGES)]


def ensure() -> Path:
    """The browser; it and the font are installed when missing and this is root on a Debian-like system."""
    if missing() and debian_package.can_install():
        with exclusive(ITEM, ITEM):
            if packages := missing():
                debian_package.install(ITEM, *packages)
                return locate()
    say(ITEM, f"found {locate()}")
    return locate()
