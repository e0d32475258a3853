"""Are a run's files as they were when they were written? sums.json and each rate's summary have what they were."""

from __future__ import annotations

from pathlib import Path

from benchmarks.run_directory import SUMMARY, RateResult, RunDirectory
from benchmarks.sums import SUMS, changed_since, read_sums, sha256_of


def file_sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file below a rate's folder, by its path in there; without the summary that keeps them."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith((".", SUMMARY))]
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def file_sums(folder: Path) -> dict[str, str]:
    """SHA-256 of the same files, in hexadecimal."""
    return {name: sha256_of(folder / name) or "" for name in file_sizes(folder)}


def damaged_files(run: RunDirectory) -> list[str]:
    """A line for each file of a run that is missing or is another than was written; empty when all are whole.

    Runs that are older than this keep no sums or sizes, and are not judged.
    """
    lines = changed_since(run.path)
    if run.info.sums and read_sums(run.path) is None:
        lines.append(f"{SUMS} is missing or damaged: nothing shows whether the run is as it was")
    for result in run.results():
        lines += [f"{result.rate:g} req/s: {line}" for line in _of_rate(run.rate_folder(result.rate), result)]
    return lines


def _of_rate(folder: Path, result: RateResult) -> list[str]:
    lines: list[str] = []
    now = file_sizes(folder) if result.files else {}
    for name, size in result.files.items():
        if name not in now:
            lines.append(f"{name} is missing")
        elif now[name] != size:
            what = "cut off" if now[name] < size else "changed"
            lines.append(f"{name} is {what}, {now[name]:,} bytes of {size:,}")
        elif name in result.sha256 and sha256_of(folder / name) != result.sha256[name]:
            lines.append(f"{name} is changed, its {size:,} bytes are not those that were measured")
    return lines
