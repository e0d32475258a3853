"""Where built and installed things are kept between checkouts, and the lock that lets two runs share it."""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from .console import Stopwatch, say
from .errors import ToolchainError

CACHE_VARIABLE = "PD_MI325X_CACHE"
SAY_EVERY_S = 10.0


def cache_root() -> Path:
    """`$PD_MI325X_CACHE`, else `~/.cache/pd-mi325x`; made when missing.

    Links are resolved: what programs run from is compared with it, and the kernel and `resolve` name that one place.
    """
    root = Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "pd-mi325x").expanduser()
    with _one_line(root):
        root = root.resolve()
        root.mkdir(parents=True, exist_ok=True)
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
    with _locked(item, cache_root() / "locks" / f"{name}.lock"):
        yield


@contextmanager
def unless_held(name: str) -> Iterator[bool]:
    """Hold the cache's lock `name` if no other run holds it: whether it is held here now."""
    place = cache_root() / "locks" / f"{name}.lock"
    with ExitStack() as stack:
        with _one_line(place):
            place.parent.mkdir(exist_ok=True)
            file = stack.enter_context(place.open("a+", encoding="utf-8"))
        yield _try_lock(file.fileno())


def _locked(item: str, place: Path) -> TextIO:
    """The lock's file, locked until it is closed. What happens under the lock reports its own errors."""
    with ExitStack() as undo, _one_line(place):
        place.parent.mkdir(exist_ok=True)
        file = undo.enter_context(place.open("a+", encoding="utf-8"))
        if not _try_lock(file.fileno()):
            _wait(item, file.fileno(), holder=_read(place))
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        undo.pop_all()
        return file


@contextmanager
def _one_line(place: Path) -> Iterator[None]:
    """Turn what the system says about a place in the cache into one line: made by root once, read-only, full."""
    try:
        yield
    except OSError as error:
        raise ToolchainError(
            "cache",
            f"cannot write {place}: {error.strerror}",
            f"make it yours (`sudo chown -R`), make room, or set {CACHE_VARIABLE} to a folder you can write",
        ) from None


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


def _read(place: Path) -> str:
    return place.read_text(encoding="utf-8").strip()
