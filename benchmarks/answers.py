"""What a finished run answers, drawn again from its raw records whenever it is shown.

answers.json says that a run is complete. Its numbers are not believed: somebody may have edited them, or a version that
reckoned otherwise have written them.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.highest_rate import SloAnswer, answer_slos
from benchmarks.measured import read_measured
from benchmarks.run_directory import ANSWERS, RunDirectory, open_run


def read_answers(run: RunDirectory) -> list[SloAnswer]:
    """What a run answers; nothing while it is not finished, or when its records are not whole.

    The latter is a fault of the run (benchmarks/kept_files.py), and no reason to show nothing of it at all.
    """
    if not (run.path / ANSWERS).exists():
        return []
    files = sorted(path for pattern in ("*.json", "rates/*/**/*.json*") for path in run.path.glob(pattern))
    state = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    return list(_answers(run.path, state))


@lru_cache(maxsize=4)  # the report and the terminal summary each ask, and a search has tens of thousands of records
def _answers(path: Path, _state: tuple[tuple[str, int, int], ...]) -> tuple[SloAnswer, ...]:
    run = open_run(path)
    try:
        measured = read_measured(run)
    except BenchmarkError:
        return ()
    return tuple(answer_slos(run.scenario, measured)) if measured else ()
