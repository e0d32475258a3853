"""`make prune`: deletes from the cache what this checkout does not use.

Each moved pin makes an environment or a program beside the old one, which other checkouts may still use. What a run is
making and what a process runs from stays.
"""

import os
import re
import shutil
from pathlib import Path

from . import environments, find_uv, go_install, go_programs, pulumi_cli
from .cache import cache_root, unless_held
from .console import home_relative, say

ITEM = "prune"
# What a killed build or a killed `prune` leaves: `<name>-<key>.<pid>`, made under the lock of `<name>-<key>`.
_SCRATCH = re.compile(r"(?P<lock>.+-[0-9a-f]{12})\.\d+")


def prune() -> None:
    """Delete and say what, and how large it was."""
    root, used = cache_root(), _used()
    candidates = sorted([*root.glob("envs/*"), *root.glob("bin/*"), *root.glob("uv-*")])
    sizes = [_delete(folder) for folder in candidates if folder not in used]
    say(ITEM, f"deleted {sum(size is not None for size in sizes)} folders, {_size(sum(filter(None, sizes)))}")


def _used() -> set[Path]:
    """The folders of the cache that the present pins name, made or not."""
    return {
        *(environments.directory(name) for name in environments.ENVIRONMENTS),
        *(go_install.target(program).parent for program in go_programs.every()),
        pulumi_cli.executor_place().parent,
        find_uv.cache_folder(),
    }


def _delete(folder: Path) -> int | None:
    """Its size in bytes; None when it stays."""
    scratch = _SCRATCH.fullmatch(folder.name)
    with unless_held(scratch["lock"] if scratch else folder.name) as free:
        if not free:
            say(ITEM, f"kept {home_relative(folder)}: another run is making it")
            return None
        user = _process_from(folder)
        if user:
            say(ITEM, f"kept {home_relative(folder)}: process {user} runs from it")
            return None
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
        # Renamed first: half of a folder must not lie under the name of a whole one. A later `prune` deletes the rest.
        shutil.rmtree(folder if scratch else folder.rename(folder.with_name(f"{folder.name}.{os.getpid()}")))
        say(ITEM, f"deleted {home_relative(folder)}, {_size(size)}")
        return size


def _process_from(folder: Path) -> str | None:
    """The id of a process whose program, libraries or command line lie in a folder."""
    needle = f"{folder}/".encode()
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("maps", "cmdline"):
            try:
                if needle in (process / name).read_bytes():
                    return process.name
            except OSError:  # another user's, or ended since
                continue
    return None


def _size(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB" if size >= 1024**3 else f"{size / 1024**2:.0f} MiB"
