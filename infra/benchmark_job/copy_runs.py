"""Copies runs from the results volume into a local folder, each whole and checked, or not at all."""

import contextlib
import hashlib
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.run_directory import open_run
from benchmarks.run_summary import FILE as SUMMARY
from infra.benchmark_job.job import Jobs
from infra.benchmark_job.pod_exec import Broken, PodOutput, run_in_pod
from infra.benchmark_job.reader_pod import READER, reader_pod, results_folder
from infra.benchmark_job.view import View

_RUN_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
_ATTEMPTS = 3  # a broken connection seldom breaks twice in a row; what fails three times has another cause
_WRITTEN_AGAIN = ("report.html", SUMMARY)  # here, so they may differ


@dataclass
class Copied:
    """Ids of runs: those brought here now, and those that were here already. Unfinished ones are among both."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


def copy_runs(jobs: Jobs, cronjob: dict[str, Any], results: Path, view: View) -> Copied:
    """Copy every run of the stack that is not here yet, and newer states of unfinished ones. Raises BenchmarkError.

    A finished run that is here is never touched.
    """
    folder = results / jobs.place.stack
    folder.mkdir(parents=True, exist_ok=True)
    copied = Copied()
    with reader_pod(jobs, cronjob, view) as pod:
        volume = _Volume(jobs, pod, f"{results_folder(cronjob)}/{jobs.place.stack}")
        for run in volume.runs():
            here = folder / run
            if _finished(here):
                copied.known.append(run)
                continue
            sums = volume.checksums(run)
            if here.exists() and _same(here, sums):
                copied.known.append(run)
                continue
            view.log(f"copying {run}, {len(sums)} files")
            with _staging(results) as staging:
                volume.copy(run, sums, staging)
                _put(staging, here)
            copied.new.append(run)
    return copied


class _Volume:
    """The stack's folder on the results volume, seen through a pod. Its image needs find, sha256sum, tar and gzip."""

    def __init__(self, jobs: Jobs, pod: str, folder: str) -> None:
        self._jobs = jobs
        self._pod = pod
        self._folder = folder

    def runs(self) -> list[str]:
        """Ids of all runs, oldest first."""
        # The parent, so that a stack that has never been measured is no error.
        parent, name = self._folder.rsplit("/", 1)
        # ext4 keeps lost+found there, for root alone: find would fail on it.
        elsewhere = ("-path", f"{parent}/lost+found", "-prune")
        wanted = ("-path", f"{parent}/{name}/*/run.json", "-print")
        found = self._ask("find", parent, "-maxdepth", "3", *elsewhere, "-o", *wanted)
        ids = [line.split("/")[-2] for line in found.splitlines()]
        return sorted(run for run in ids if _RUN_ID.match(run))

    def checksums(self, run: str) -> dict[str, str]:
        """SHA-256 of every file of a run, by its path inside of it."""
        place = f"{self._folder}/{run}"
        lines = self._ask("find", place, "-type", "f", "-exec", "sha256sum", "{}", "+").splitlines()
        return {path.removeprefix(f"{place}/"): digest for digest, _, path in (line.partition("  ") for line in lines)}

    def copy(self, run: str, sums: dict[str, str], destination: Path) -> None:
        """Put a run's files into `destination`, exactly those of `sums`. Raises BenchmarkError."""
        problem = ""
        for _ in range(_ATTEMPTS):
            shutil.rmtree(destination, ignore_errors=True)
            destination.mkdir(parents=True)
            try:
                self._unpack(run, destination)
            except (Broken, tarfile.TarError, EOFError, OSError, ValueError) as error:
                problem = str(error)
                continue
            wrong = sorted(
                path for path in sums.keys() | _files(destination) if _sha256(destination / path) != sums.get(path)
            )
            if not wrong:
                return
            problem = f"{len(wrong)} files differ from those on the volume, the first: {wrong[0]}"
        raise BenchmarkError(
            f"run {run} did not arrive whole in {_ATTEMPTS} attempts (is it being measured?): {problem}"
        )

    def _unpack(self, run: str, destination: Path) -> None:
        place = f"{self._folder}/{run}"
        command = ("tar", "-C", place, "-czf", "-", ".")  # text, which shrinks to a fifth on its way
        with PodOutput(self._jobs.api, self._jobs.place.namespace, self._pod, READER, command) as output:
            with tarfile.open(fileobj=output, mode="r|gz") as archive:
                archive.extractall(destination, filter="data")
            output.read()  # to the command's own end: tar fails when a file changes under it

    def _ask(self, *command: str) -> str:
        problem: Broken | None = None
        for _ in range(_ATTEMPTS):
            try:
                answer = run_in_pod(self._jobs.api, self._jobs.place.namespace, self._pod, READER, command)
                return answer.decode("utf-8", errors="surrogateescape")
            except Broken as error:
                problem = error
        raise BenchmarkError(f"cannot read the results volume: {problem}")


@contextlib.contextmanager
def _staging(results: Path) -> Iterator[Path]:
    """A folder on the same file system, out of the way of everything that looks for runs."""
    parent = Path(tempfile.mkdtemp(prefix=".copying-", dir=results))
    try:
        yield parent / "run"
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _put(staging: Path, here: Path) -> None:
    """Move a copied run to its place. What was there is unfinished, or was finished by somebody in the meantime."""
    if _finished(here):
        return
    if here.exists():
        here.rename(staging.with_name("replaced"))
    staging.rename(here)


def _finished(run: Path) -> bool:
    try:
        return open_run(run).complete
    except BenchmarkError:
        return False


def _same(here: Path, sums: dict[str, str]) -> bool:
    return all(_sha256(here / path) == digest for path, digest in sums.items() if path not in _WRITTEN_AGAIN)


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _sha256(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
