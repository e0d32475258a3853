"""What goes wrong before anything is measured: one line, its exit code, nothing started, no secret shown."""

import io
import json
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import BenchmarkError
from infra.benchmark_job.__main__ import main
from infra.benchmark_job.job import Jobs
from infra.benchmark_job.kube_api import KubeApi
from infra.benchmark_job.outputs import ClusterAccess, Place
from infra.provider.kubernetes_api import Unavailable

TOKEN = "a-token-nobody-may-see"
JOBS = "/apis/batch/v1/namespaces/llm/jobs"
CRONJOB = "/apis/batch/v1/namespaces/llm/cronjobs/benchmark"
SERVICE = "/apis/ray.io/v1/namespaces/llm/rayservices/llm"
CLAIM = "/api/v1/namespaces/llm/persistentvolumeclaims/results"
TARGET = "/api/v1/namespaces/llm/configmaps/benchmark-target"


@dataclass
class Answers:
    """What the stand-in for an API server answers, by path: status, and an object or a failure's message.

    Other paths are 404.
    """

    given: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def answers() -> Answers:
    """A cluster with a template, a volume and no Job."""
    container = {"name": "benchmark", "image": "b:1", "volumeMounts": [{"name": "results", "mountPath": "/results"}]}
    pod = {"spec": {"containers": [container]}}
    cronjob = {
        "metadata": {"name": "benchmark", "namespace": "llm", "uid": "1"},
        "spec": {"jobTemplate": {"spec": {"template": pod}}},
    }
    claim = {"metadata": {}, "status": {"phase": "Bound"}}
    target = {"data": {"target.json": json.dumps({"scenario": "rehearsal"})}}
    found = {CRONJOB: cronjob, CLAIM: claim, SERVICE: ready("True"), TARGET: target, JOBS: {"items": []}}
    return Answers({path: (200, body) for path, body in found.items()})


def ready(status: str) -> dict[str, Any]:
    return {"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": status, "message": "no\nendpoint"}]}}


@pytest.fixture
def server(answers: Answers) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def _answer(self) -> None:
            path = self.path.partition("?")[0]
            answers.asked.append(f"{self.command} {path}")
            status, body = answers.given.get(path, (404, f"{path} not found"))
            if isinstance(body, str):
                body = {"kind": "Status", "message": body}
            payload = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
    httpd.server_close()


def kubeconfig(server: str) -> str:
    """The content of one."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
        }
    )


def outputs(server: str, **changes: Any) -> dict[str, Any]:
    place = {
        "namespace": "llm",
        "cronjob": "benchmark",
        "results_claim": "results",
        "image": "b:1",
        "stack": "pd-1p1d",
        "scenario": "rehearsal",
    }
    cluster = {"kubeconfig": kubeconfig(server), "context": "", "namespace": "llm"}
    return {"benchmark_job": place, "cluster": cluster, "service_url": "http://llm"} | changes


class Fails:
    """Runs the command line on these outputs, expects one line on standard error, and gives it back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        self._monkeypatch, self._capsys, self._results = monkeypatch, capsys, tmp_path / "results"

    def __call__(self, text: str | dict[str, Any], *arguments: str) -> str:
        words = ["benchmark_job", *(arguments or ("run",)), "--results", str(self._results)]
        self._monkeypatch.setattr(sys, "argv", words)
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(text if isinstance(text, str) else json.dumps(text)))
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        assert ended.value.code == 1
        assert len(said.err.splitlines()) == 1, said.err
        assert said.err.startswith("error: ")
        assert TOKEN not in said.err + said.out
        assert [*self._results.glob("*")] == []
        return said.err


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Fails:
    return Fails(monkeypatch, capsys, tmp_path)


def test_outputs_that_are_none(fails: Fails, server: str) -> None:
    assert "is not JSON" in fails("")
    assert "no output `benchmark_job`" in fails({"benchmark": {}})
    assert "stack output cluster: is missing" in fails({"benchmark_job": outputs(server)["benchmark_job"]})
    nowhere = {"kubeconfig": "/nowhere/at-all"}
    assert "kubeconfig /nowhere/at-all does not exist" in fails(outputs(server, cluster=nowhere))
    unknown = {"kubeconfig": kubeconfig(server), "context": "other"}
    assert "other" in fails(outputs(server, cluster=unknown))
    broken = {"kubeconfig": f"{{token: {TOKEN}"}
    assert "the kubeconfig is not a YAML document" in fails(outputs(server, cluster=broken))


def test_a_scenario_or_rate_that_does_not_exist(fails: Fails, server: str, answers: Answers) -> None:
    assert "no scenario called 'nope'" in fails(outputs(server), "run", "--scenario", "nope")
    assert "--rates 'fast': give numbers" in fails(outputs(server), "run", "--rates", "fast")
    assert answers.asked == []


def test_a_cluster_that_does_not_answer(fails: Fails) -> None:
    line = fails(outputs("http://127.0.0.1:9"))
    assert "Kubernetes API http://127.0.0.1:9 cannot be reached" in line
    assert "refused" in line


@pytest.mark.parametrize("verb", ["run", "results"])
def test_an_expired_kubeconfig(fails: Fails, server: str, answers: Answers, verb: str) -> None:
    answers.given[CRONJOB] = (401, "Unauthorized")
    line = fails(outputs(server), verb)
    assert "refused the credentials of me (401): expired or wrong; run `pulumi refresh --target " in line


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        (CRONJOB, (404, {}), "there is no CronJob benchmark in namespace llm; run `pulumi up` of pd-1p1d"),
        (CRONJOB, (403, "cronjobs is forbidden"), "cronjobs is forbidden; ask for that permission"),
        (CRONJOB, (503, "starting"), "answered 503 to GET /apis/batch/v1/namespaces/llm/cronjobs/benchmark: starting"),
        (CRONJOB, (200, b"<html>a proxy</html>"), "does not answer as a Kubernetes API"),
        (CLAIM, (404, {}), "the volume claim results in namespace llm is gone or has lost its volume"),
        (CLAIM, (200, {"metadata": {}, "status": {"phase": "Lost"}}), "is gone or has lost its volume"),
        (
            SERVICE,
            (200, ready("False")),
            "RayService llm in namespace llm is not ready (no endpoint), so that there is nothing to measure; run",
        ),
        (
            SERVICE,
            (200, {"metadata": {}}),
            "is not ready, so that there is nothing to measure; run `pulumi up` of pd-1p1d",
        ),
        (
            SERVICE,
            (404, {}),
            "is not there, so that there is nothing to measure; run `pulumi refresh`, then `pulumi up`",
        ),
        (JOBS, (403, "jobs is forbidden"), "jobs is forbidden; ask for that permission"),
    ],
)
def test_what_is_not_there_or_not_allowed(
    fails: Fails, server: str, answers: Answers, path: str, answer: tuple[int, Any], said: str
) -> None:
    answers.given[path] = answer
    assert said in fails(outputs(server))
    assert f"POST {JOBS}" not in answers.asked


def job(name: str, *conditions: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-11-30T01:00:00Z"},
        "status": {"conditions": [{"type": kind, "status": "True"} for kind in conditions]},
    }


def test_one_benchmark_at_a_time(fails: Fails, server: str, answers: Answers) -> None:
    answers.given[JOBS] = (200, {"items": [job("benchmark-3"), job("benchmark-2", "Complete")]})
    line = fails(outputs(server))
    assert "benchmark-3 measures pd-1p1d already; follow it with `make results`" in line
    assert "kubectl delete job benchmark-3 -n llm" in line
    assert f"POST {JOBS}" not in answers.asked


def test_the_scenario_is_that_of_the_target_in_the_cluster(server: str, answers: Answers) -> None:
    """After an update that failed the stack's outputs may name another one, which no pod would run."""
    answers.given[TARGET] = (200, {"data": {"target.json": json.dumps({"scenario": "qwen-8k-1k"})}})
    place = Place.model_validate(outputs(server)["benchmark_job"])
    jobs = Jobs(KubeApi(ClusterAccess(kubeconfig=kubeconfig(server), context="")), place)
    assert jobs.deployed_scenario() == "qwen-8k-1k"
    answers.given[TARGET] = (200, {"data": {}})
    with pytest.raises(BenchmarkError, match="has no target; run `pulumi up` of pd-1p1d"):
        jobs.deployed_scenario()


def test_two_who_start_at_the_same_moment(
    fails: Fails, server: str, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both see no active Job and choose the next name, which Kubernetes gives to one of them."""
    monkeypatch.setattr(Jobs, "all", lambda _: [job("benchmark-2", "Complete")])
    answers.given[JOBS] = (409, 'jobs.batch "benchmark-3" already exists')
    answers.given[f"{JOBS}/benchmark-3"] = (200, job("benchmark-3"))
    assert "benchmark-3 measures pd-1p1d already" in fails(outputs(server))


def test_no_file_holds_the_kubeconfig(
    fails: Fails, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Answers
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    answers.given[CRONJOB] = (404, {})
    fails(outputs(server))
    assert all(TOKEN not in file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file())


def test_a_tls_connection_that_breaks_off_may_pass() -> None:
    """A load balancer without an API server behind it, as while one restarts: who follows a Job waits for it."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=lambda: door.accept()[0].close(), daemon=True).start()
        api = KubeApi(ClusterAccess(kubeconfig=kubeconfig(f"https://127.0.0.1:{door.getsockname()[1]}")))
        with pytest.raises(Unavailable):
            api.get(CRONJOB)
