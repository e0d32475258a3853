"""The folder that a rehearsal keeps everything in: gone at its end, kept for its logs where something failed."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.rehearsal.leftovers import end_leftovers
from tools.toolchain.console import say


@contextmanager
def state_directory(item: str) -> Iterator[Path]:
    """A new folder. Removed also after an interruption, which is said to have left nothing."""
    folder = Path(tempfile.mkdtemp(prefix="pd-rehearsal-"))
    try:
        try:
            yield folder
        finally:
            end_leftovers(folder)
    except Exception:
        if any(folder.rglob("*.log")):
            say(item, f"its logs stay for you to read and delete: {folder}")
        else:
            shutil.rmtree(folder)
        raise
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        say(item, f"interrupted; {folder if folder.exists() else 'nothing'} is left")
        raise
    else:
        shutil.rmtree(folder)
