"""`split_layers.py SOURCE DEST --parts N --limit-mb M`: a directory as N parts, each small enough for an image layer.

Copied one after the other onto `/`, DEST/0 to DEST/N-1 are SOURCE again, at its own path or at `--as`. Files are taken
in the order of their paths, so that a change moves few of them into another part. Runs at image build, on any Python 3.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

# A target. MIOpen's databases join a number of compute units to it, in hexadecimal: gfx942130.db.txt is of gfx942 with
# 304 (ROCm/MIOpen, Handle::GetDbBasename). Three digits at least: a generic target (gfx9-4-generic) is of several GPUs.
_GPU = re.compile(r"gfx[0-9a-f]{3,}")
_BLOCK = 512  # bytes, of a tar


def files(source: Path, only_gpu: str = "") -> Iterator[Path]:
    """Files, links and empty folders below `source`, relative, in order.

    Without those that name other GPUs and not `only_gpu`.
    """
    for folder, folders, names in os.walk(source):
        folders.sort()
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*names, *links]):
            targets = _GPU.findall(name)
            if not only_gpu or not targets or any(target.startswith(only_gpu) for target in targets):
                yield (Path(folder) / name).relative_to(source)
        if not folders and not names and Path(folder) != source:
            yield Path(folder).relative_to(source)


def in_layer(file: Path) -> int:
    """Bytes of a file in a layer, which is a tar: whole blocks, its header, and two more blocks if its name is long."""
    blocks = -(-file.lstat().st_size // _BLOCK) if file.is_file() and not file.is_symlink() else 0
    return _BLOCK * (blocks + 3)


def plan(source: Path, parts: int, limit: int, only_gpu: str = "") -> list[list[Path]]:
    """Which file goes into which part. Raises ValueError when `parts` of `limit` bytes do not hold them."""
    planned: list[list[Path]] = [[]]
    room = limit
    for file in files(source, only_gpu):
        size = in_layer(source / file)
        if size > limit:
            raise ValueError(f"{source / file} has {size:,} bytes; a part may have {limit:,}")
        if size > room:
            planned.append([])
            room = limit
        planned[-1].append(file)
        room -= size
    if len(planned) > parts:
        total = sum(in_layer(source / file) for part in planned for file in part)
        raise ValueError(f"{source} has {total:,} bytes: it takes {len(planned)} parts of {limit:,}, not {parts}")
    return planned + [[] for _ in range(parts - len(planned))]


def split(source: Path, destination: Path, place: Path, planned: list[list[Path]], *, move: bool) -> None:
    """Copy, or move, each part of `source` to DESTINATION/NUMBER/PLACE; modes and times are kept."""
    for number, part in enumerate(planned):
        root = destination / str(number)
        root.mkdir(parents=True)
        for file in part:
            target = root / place.relative_to("/") / file
            for parent in reversed(file.parents):
                made = root / place.relative_to("/") / parent
                if not made.exists():
                    made.mkdir(parents=True)
                    shutil.copystat(source / parent, made)
            if (source / file).is_dir() and not (source / file).is_symlink():
                target.mkdir()
                shutil.copystat(source / file, target)
            elif move:
                (source / file).rename(target)
            else:
                shutil.copy2(source / file, target, follow_symlinks=False)


def main() -> int:
    """Split as the command line says; an exit code."""
    parser = argparse.ArgumentParser(prog="split_layers.py", description="A directory as parts for image layers.")
    parser.add_argument("source", type=Path)
    parser.add_argument("destination", type=Path)
    parser.add_argument("--as", dest="place", type=Path, help="where the parts go in the image (default: SOURCE)")
    parser.add_argument("--parts", type=int, required=True)
    parser.add_argument("--limit-mb", type=int, required=True, help="10^6 bytes that a part may have")
    parser.add_argument(
        "--only-gpu", default="", help="leave out files that name other GPU targets, for example gfx942"
    )
    parser.add_argument("--move", action="store_true", help="take the files away from SOURCE: half the disk")
    arguments = parser.parse_args()
    try:
        planned = plan(arguments.source, arguments.parts, arguments.limit_mb * 10**6, arguments.only_gpu)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sizes = [sum(in_layer(arguments.source / file) for file in part) for part in planned]
    place = arguments.place or arguments.source
    split(arguments.source, arguments.destination, place, planned, move=arguments.move)
    for number, (part, size) in enumerate(zip(planned, sizes, strict=True)):
        print(f"{arguments.destination}/{number}: {len(part):,} files, {size / 1e6:,.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
