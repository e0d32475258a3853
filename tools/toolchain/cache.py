"""Where built and installed things are kept between checkouts, and the lock that lets two runs share it."""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .console import Stopwatch, say
from .errors import ToolchainError

CACHE_VARIABLE = "PD_MI325X_CACHE"
SAY_EVERY_S = 10.0


def cache_root() -> Path:
    """`$PD_MI325X_CACHE`, else `~/.cache/pd-mi325x`; made when missing."""
    root = Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "pd-mi325x").expanduser().absolute()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolchainError(
            "cache", f"cannot make {root}: {error.strerror}", f"set {CACHE_VARIABLE} to a folder you can write"
        ) from None
    return root


def content_key(parts: Iterable[bytes | str]) -> str:
    """A short name for exactly this content: 12 hexadecimal digits of its SHA-256."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        # The length keeps ("ab", "c") and ("a", "bc") apart.
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:12]


@contextmanager
def exclusive(item: str, name: str) -> Iterator[None]:
    """Hold the cache's lock `name`; while another run holds it, say so. The kernel frees it if that run is killed."""
    folder = cache_root() / "locks"
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.lock").open("a+", encoding="utf-8") as file:
        if not _try_lock(file.fileno()):
            _wait(item, file.fileno(), holder=_read(file.name))
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(item: str, descriptor: int, holder: str) -> None:
    waited, said = Stopwatch(), 0.0
    say(item, f"another run (pid {holder or 'unknown'}) is making it; waiting for that one")
    while not _try_lock(descriptor):
        time.sleep(0.2)
        if waited.seconds - said >= SAY_EVERY_S:
            said = waited.seconds
            say(item, f"still waiting for the other run, {waited}")


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8").strip()
