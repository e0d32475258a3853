"""Are a run's files as whole as they were when they were written? Their sizes stand in each rate's summary."""

from __future__ import annotations

from pathlib import Path

from benchmarks.run_directory import SUMMARY, RunDirectory


def file_sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file below a rate's folder, by its path in there; without the summary that keeps them."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith((".", SUMMARY))]
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def damaged_files(run: RunDirectory) -> list[str]:
    """A line for each file of a finished rate that is missing or has another size; empty when all are whole.

    Runs that are older than this keep no sizes, and are not judged.
    """
    lines: list[str] = []
    for result in run.results():
        now = file_sizes(run.rate_folder(result.rate)) if result.files else {}
        for name, size in result.files.items():
            if name not in now:
                lines.append(f"{result.rate:g} req/s: {name} is missing")
            elif now[name] != size:
                what = "cut off" if now[name] < size else "changed"
                lines.append(f"{result.rate:g} req/s: {name} is {what}, {now[name]:,} bytes of {size:,}")
    return lines
