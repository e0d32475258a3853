"""Packages of the distribution, installed where this is root on a Debian-like system."""

import os
import shutil

from .cache import cache_root
from .console import Stopwatch, say
from .process import work


def can_install() -> bool:
    """Whether `install` may be tried."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(item: str, *packages: str) -> None:
    """Install them, for `item`. Raises ToolchainError with the end of apt-get's log."""
    watch = Stopwatch()
    say(item, f"not on this machine; installing the Debian package {', '.join(packages)}")
    log = cache_root() / "log" / f"{item}.log"
    log.unlink(missing_ok=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", *packages]):
        work(item, command, log=log, progress=lambda elapsed: f"apt-get, {elapsed:.0f} s", env=environment)
    say(item, f"installed in {watch}")
