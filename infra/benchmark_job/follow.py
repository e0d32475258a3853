"""Follows a benchmark Job to its end: says what it waits for, shows its log, and outlives a break of the connection."""

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.errors import BenchmarkError
from infra.benchmark_job.job import Jobs
from infra.benchmark_job.kube_api import PROBLEMS, Json
from infra.benchmark_job.pod_state import Ended, Running, State, Waiting, job_finished, job_state
from infra.benchmark_job.view import View
from infra.provider.kubernetes_api import Unavailable
from serving.kubernetes_names import BENCHMARK

_RUN_DIRECTORY = re.compile(r"^run directory: \S*/([A-Za-z0-9][A-Za-z0-9._-]*)$")  # benchmarks/__main__.py


@dataclass(frozen=True)
class Patience:
    """Seconds.

    poll_s: between two looks. quiet_s: a log that says nothing for so long is asked for again, in case the connection
    is gone without a word; the benchmark itself says something every 10. stuck_s: how long a container may fail to
    start, since a registry that hiccups shows the same reasons. away_s: how long the API server may not answer; DOKS
    replaces a control plane within minutes. settle_s: from the end of a container to the end of its Job, and how long
    the last of its log is asked for.
    """

    poll_s: float = 2.0
    quiet_s: float = 15.0
    stuck_s: float = 120.0
    away_s: float = 900.0
    settle_s: float = 30.0


@dataclass
class Log:
    """What has been read of a log. `run`: the run's id, once the benchmark has said it."""

    lines: int = 0
    run: str | None = None
    last: str = ""
    error: str = ""

    def take(self, line: str) -> None:
        """Note one more line."""
        self.lines += 1
        if found := _RUN_DIRECTORY.match(line):
            self.run = found[1]
        self.last = line.strip() or self.last
        if line.startswith("error: "):
            self.error = line.removeprefix("error: ").strip()


@dataclass(frozen=True)
class Outcome:
    """How a Job ended. code: the container's; None: there is none, see `reason`. shown: its whole log was shown."""

    code: int | None
    reason: str
    log: Log = field(default_factory=Log)
    shown: bool = False


class Stuck(BenchmarkError):
    """The container cannot start; nothing has been measured."""


def follow(jobs: Jobs, job: Json, view: View, patience: Patience | None = None) -> Outcome:
    """Wait for the end of a Job. Raises Stuck, or another BenchmarkError, after which the Job goes on."""
    return _Follower(jobs, job, view, patience or Patience()).follow()


def look_back(jobs: Jobs, job: Json) -> Outcome:
    """The outcome of a Job that has finished, as far as its pod is still there."""
    pod = jobs.pod(job)
    state = job_state(job, pod, BENCHMARK)
    log = Log()
    with contextlib.suppress(*PROBLEMS):  # its node may be gone, and the log with it
        for line in _log_lines(jobs, pod):
            log.take(line)
    return Outcome(state.code, state.reason, log) if isinstance(state, Ended) else Outcome(None, "", log)


class _Follower:
    def __init__(self, jobs: Jobs, job: Json, view: View, patience: Patience) -> None:
        self.jobs = jobs
        self.job = job
        self.name = str(job["metadata"]["name"])
        self.view = view
        self.patience = patience
        self.log = Log()
        self.pod: Json | None = None
        self._log_seen = time.monotonic()

    def follow(self) -> Outcome:
        began, stuck_since = time.monotonic(), None
        while True:
            try:
                state = self._patiently(self._look, self.patience.away_s)
            except PROBLEMS as error:
                raise BenchmarkError(f"{error} ({self.name} goes on; `make results` comes back to it)") from None
            now = time.monotonic()
            if state is None:
                return Outcome(None, "the Job was deleted", self.log)
            if isinstance(state, Ended):
                return self._end(state)
            if isinstance(state, Running):
                self._show_log()
                continue
            stuck_since = (stuck_since or now) if state.stuck else None
            if stuck_since is not None and now - stuck_since >= self.patience.stuck_s:
                raise Stuck(f"{self.name} cannot start, given up after {now - stuck_since:.0f} s: {state.reason}")
            self.view.wait(f"{self.name}: {state.reason}", now - began)
            time.sleep(self.patience.poll_s)

    def _look(self) -> State | None:
        """None when the Job is gone."""
        job = self.jobs.read(self.name)
        if job is None:
            return None
        self.job = job
        self.pod = self.jobs.pod(self.job)
        state = job_state(self.job, self.pod, BENCHMARK)
        if isinstance(state, Waiting):
            # Events take another request each, so only while there is nothing better to say.
            state = job_state(self.job, self.pod, BENCHMARK, self.jobs.warnings(self.job, self.pod))
        return state

    def _show_log(self) -> None:
        """Show the log as it comes, until the stream ends, whatever ends it."""
        assert self.pod is not None  # noqa: S101  it runs
        began, skip, rest = time.monotonic(), self.log.lines, b""
        if not self.log.lines:  # else why the pod waited would stand there until the first line
            self.view.show(f"{self.name} runs; there is nothing in its log yet")
        try:
            query = {"container": BENCHMARK, "follow": "true"}
            for piece in self.jobs.api.stream(self.jobs.log_path(self.pod), self.patience.quiet_s, **query):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if skip:  # shown before the last break: a stream always begins with the first line
                        skip -= 1
                    else:
                        self._take(line.decode("utf-8", errors="replace"))
        except PROBLEMS as error:
            # What it means is seen in the state of the pod, which is looked at next.
            self.view.wait(f"{self.name} runs, but its log cannot be read: {error}", time.monotonic() - self._log_seen)
        else:
            self._log_seen = time.monotonic()
        time.sleep(max(0.0, self.patience.poll_s - (time.monotonic() - began)))

    def _end(self, state: Ended) -> Outcome:
        """The rest of the log; and wait for the Job to finish too, so that the next one may start at once."""
        limit_s, whole = self.patience.settle_s, False
        with contextlib.suppress(*PROBLEMS):  # its node may be gone, and the log with it
            for line in self._patiently(lambda: _log_lines(self.jobs, self.pod), limit_s)[self.log.lines :]:
                self._take(line)
            whole = self.log.lines > 0
        limit = time.monotonic() + limit_s
        with contextlib.suppress(*PROBLEMS):  # the result is known; the state of the Job matters to nobody now
            while not job_finished(self.job) and time.monotonic() < limit:
                time.sleep(min(self.patience.poll_s, 0.5))
                self.job = self._patiently(lambda: self.jobs.read(self.name), limit_s) or self.job
        return Outcome(state.code, state.reason, self.log, shown=whole and not self.view.moving)

    def _take(self, line: str) -> None:
        self.log.take(line)
        self.view.log(line)

    def _patiently[T](self, look: Callable[[], T], limit_s: float) -> T:
        """Look, again and again while the API server does not answer. Raises Unavailable when it stays away."""
        began = time.monotonic()
        while True:
            try:
                return look()
            except Unavailable as error:
                away = time.monotonic() - began
                if away >= limit_s:
                    raise Unavailable(f"{error}, given up after {away:.0f} s") from None
                self.view.wait(f"{self.name} goes on, but cannot be seen: {error}", away)
            time.sleep(self.patience.poll_s)


def _log_lines(jobs: Jobs, pod: Json | None) -> list[str]:
    """The whole log; nothing where there is no pod. Raises ResourceError.

    Counted as the stream's lines are: str.splitlines() also breaks at what progress bars are made of.
    """
    lines = jobs.api.text(jobs.log_path(pod), container=BENCHMARK).split("\n") if pod else []
    return lines[:-1] if lines and not lines[-1] else lines
