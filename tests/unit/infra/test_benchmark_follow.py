"""Following a Job through what Kubernetes and the network may do to it, told by a cluster that is a script."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from benchmarks.errors import BenchmarkError
from infra.benchmark_job.follow import Outcome, Patience, Stuck, follow, look_back
from infra.benchmark_job.view import View
from infra.provider.kubernetes_api import Unavailable

QUICK = Patience(poll_s=0.01, quiet_s=0.1, stuck_s=0.1, away_s=0.2, settle_s=0.1)
Scene = dict[str, Any] | Exception | None
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
RUNNING = {"running": {}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


class Cluster:
    """Plays scenes, one a look at the Job, the last for ever: a container's state, an exception, or None for no Job.

    `streams` are the logs as they come, each cut off after its last piece; `log` is the whole.
    """

    def __init__(self, *scenes: Scene, streams: tuple[list[bytes], ...] = (), log: str | None = "") -> None:
        self.scenes = [*scenes]
        self.streams = [*streams]
        self.whole = log
        self.api = self

    def read(self, _name: str) -> dict[str, Any] | None:
        scene = self.scenes[0]
        if scene is None:
            return None
        if isinstance(scene, Exception):
            if len(self.scenes) > 1:
                self.scenes.pop(0)
            raise scene
        finished = [{"type": "Complete", "status": "True"}] if "terminated" in scene else []
        return {"metadata": {"name": "benchmark-1", "uid": "1"}, "status": {"conditions": finished}}

    def pod(self, _job: object) -> dict[str, Any]:
        state: Any = self.scenes.pop(0) if len(self.scenes) > 1 else self.scenes[0]
        statuses = [{"name": "benchmark", "state": state}]
        return {
            "metadata": {"name": "p", "uid": "2"},
            "spec": {"nodeName": "n"},
            "status": {"containerStatuses": statuses},
        }

    def warnings(self, *_things: object) -> list[dict[str, Any]]:
        return []

    def log_path(self, _pod: object) -> str:
        return "/log"

    def stream(self, _path: str, _quiet_s: float, **_query: str) -> Iterator[bytes]:
        if self.streams:
            yield from self.streams.pop(0)

    def text(self, _path: str, **_query: str) -> str:
        if self.whole is None:
            raise Unavailable("HTTP 500: no route to the node")
        return self.whole


class Screen:
    """What was shown where nothing moves."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._seen = ""
        self.view = View(Console(width=200))

    @property
    def lines(self) -> list[str]:
        return self._capsys.readouterr().out.splitlines()

    @property
    def text(self) -> str:
        self._seen += self._capsys.readouterr().out
        return self._seen


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str]) -> Screen:
    return Screen(capsys)


def followed(cluster: Any, screen: Screen, patience: Patience = QUICK) -> Outcome:
    with screen.view as view:
        return follow(cluster, {"metadata": {"name": "benchmark-1"}}, view, patience)


def test_a_stream_that_breaks_shows_every_line_once(screen: Screen) -> None:
    log = "run directory: /results/agg-2/the-run\none\ntwo\nlast\n"
    pieces = [b"run directory: /results/agg-2/the-run\non", b"e\ntw"]  # breaks within a line
    again = [log.encode()[:45], log.encode()[45:52]]
    outcome = followed(Cluster(RUNNING, RUNNING, ended(3), streams=(pieces, again), log=log), screen)
    assert screen.lines == log.splitlines()
    assert (outcome.code, outcome.log.run, outcome.log.last, outcome.shown) == (3, "the-run", "last", True)


def test_a_progress_bar_is_one_line(screen: Screen) -> None:
    """str.splitlines() breaks at its \\r and at others, of which the stream knows nothing: lines would come twice."""
    log = "10 %\r50 %\r100 %\nform\x0cfeed\nlast\n"
    cluster = Cluster(RUNNING, ended(0), streams=([log.encode()[:30]],), log=log)
    assert followed(cluster, screen).log.lines == 3
    assert screen.text.count("100 %") == screen.text.count("last") == 1
    assert look_back(Cluster(ended(0), log=log), {"metadata": {"name": "benchmark-1"}}).log.lines == 3  # pyright: ignore[reportArgumentType]


def test_a_log_without_a_last_line_end_is_shown_whole(screen: Screen) -> None:
    assert followed(Cluster(ended(0), log="one\ntwo"), screen).log.last == "two"
    assert screen.lines == ["one", "two"]


def test_an_image_that_cannot_be_pulled_is_given_up_with_the_reason(screen: Screen) -> None:
    with pytest.raises(Stuck, match=r"benchmark-1 cannot start, .* ImagePullBackOff: Back-off pulling image"):
        followed(Cluster(PULLING), screen)
    assert "does not start: ImagePullBackOff: Back-off pulling image (0 s)" in screen.lines[0]


def test_a_registry_that_hiccups_is_forgiven(screen: Screen) -> None:
    scenes = [*([PULLING, {"waiting": {"reason": "ContainerCreating"}}] * 20), ended(0)]
    assert followed(Cluster(*scenes), screen).code == 0


def test_an_api_server_that_comes_back(screen: Screen) -> None:
    away = Unavailable("the API server does not answer")
    assert followed(Cluster(RUNNING, away, away, ended(0)), screen).code == 0
    assert screen.lines == ["benchmark-1 goes on, but cannot be seen: the API server does not answer (0 s)"]


@pytest.mark.parametrize("error", [Unavailable("no answer"), BenchmarkError("HTTP 401: expired")])
def test_a_cluster_that_is_lost_is_one_line_and_the_job_goes_on(screen: Screen, error: Exception) -> None:
    with pytest.raises(BenchmarkError, match=rf"^{error}.*\(benchmark-1 goes on; `make results` comes back to it\)$"):
        followed(Cluster(RUNNING, error), screen)


def test_a_deleted_job_is_over(screen: Screen) -> None:
    outcome = followed(Cluster(RUNNING, None, streams=([b"run directory: /results/x/r\n"],)), screen)
    assert (outcome.code, outcome.reason, outcome.log.run) == (None, "the Job was deleted", "r")


def test_a_wait_is_said_when_its_reason_changes(screen: Screen) -> None:
    other = {"waiting": {"reason": "ErrImagePull", "message": "x"}}
    scenes = (PULLING, PULLING, other, other, PULLING, ended(0))
    followed(Cluster(*scenes), screen, replace(QUICK, stuck_s=60))  # a busy machine is no reason to give up
    assert [line.split(": ")[2] for line in screen.lines] == ["ImagePullBackOff", "ErrImagePull", "ImagePullBackOff"]


def test_a_log_whose_node_is_gone_holds_nothing_up(screen: Screen) -> None:
    outcome = followed(Cluster(RUNNING, ended(0), streams=([b"run directory: /results/x/r\n"],), log=None), screen)
    assert (outcome.code, outcome.log.run, outcome.shown) == (0, "r", False)


def test_what_a_finished_job_has_left() -> None:
    log = "run directory: /results/agg-2/r\nerror: no answer\n"
    outcome = look_back(Cluster(ended(1), log=log), {"metadata": {"name": "benchmark-1"}})  # pyright: ignore[reportArgumentType]
    assert (outcome.code, outcome.log.run, outcome.log.error, outcome.shown) == (1, "r", "no answer", False)
