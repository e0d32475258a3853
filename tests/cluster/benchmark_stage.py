"""A deployed benchmark template on the simulated cluster, terminals that run commands on it, and made-up runs."""

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubernetes import client

from benchmarks.evidence import KvProof
from benchmarks.records import Request
from benchmarks.run_directory import RateResult, RunDirectory, RunInfo, create
from benchmarks.scenario_files import find_scenario
from benchmarks.summary import summarize
from benchmarks.target import Target
from infra.benchmark_template import claim_spec, cron_job_spec
from serving.kubernetes_names import BENCHMARK_TARGET, RAY_SERVICE, RESULTS, labels
from serving.stack import parse_stack
from tests.cluster.ray_service import ray_service
from tests.cluster.waiting import eventually
from tests.shell import ROOT
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.pods import Play, PodDirectory
from tools.rehearsal.stack import simulated_image

STACK = "agg-2"
RUN = "20261130T010000Z-abcd"
READER = f"app.kubernetes.io/component={RESULTS}"
LAYOUT = {"kind": "aggregated", "topology": "agg-2", "platform": "rocm", "dummy_weights": True, "engine": {}}
REPLICAS = {"prefill": 0, "decode": 0, "aggregated": 2, "gpus": 16}
SERVICE = {"url": "http://llm:8000", "model": "m", "tokenizer": "t", "scenario": "rehearsal", "kv": None}
TARGET = {**SERVICE, "deployment": {**LAYOUT, **REPLICAS}, "versions": {}, "commit": ""}


class Terminal:
    """One command in a terminal; `text` is what it has shown so far."""

    def __init__(self, stage: "Stage", *words: str) -> None:
        command = [sys.executable, "-m", "infra.benchmark_job", *words, "--results", str(stage.results)]
        proxies = {name for name in os.environ if name.lower().endswith("_proxy")}
        environment = {name: value for name, value in os.environ.items() if name not in proxies}
        self._output = (stage.folder / f"terminal-{time.monotonic()}").open("w+")
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(stage.outputs))
        self._process.stdin.close()

    @property
    def text(self) -> str:
        return Path(self._output.name).read_text()

    def shows(self, words: str, seconds: float = 60) -> None:
        """Wait until these words are there."""
        eventually(
            lambda: words in self.text or self._process.poll() is not None, f"{words!r} in: {self.text}", seconds
        )
        assert words in self.text, self.text

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def ends(self, seconds: float = 90) -> int:
        return self._process.wait(seconds)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Stage:
    """A namespace with a benchmark's template in it, and what tests do to the pods that come of it."""

    def __init__(self, cluster: SimulatedCluster, namespace: str, folder: Path, stack: str = STACK) -> None:
        api = cluster.api()
        self.core: Any = client.CoreV1Api(api)
        self.batch: Any = client.BatchV1Api(api)
        self.cluster, self.namespace, self.folder, self.stack = cluster, namespace, folder, stack
        self.results = folder / "results"
        self.terminals: list[Terminal] = []

    @property
    def outputs(self) -> dict[str, Any]:
        """What the stack exports. The kubeconfig as content, as from a stack that made its cluster."""
        place = {"namespace": self.namespace, "cronjob": "benchmark", "results_claim": RESULTS, "image": "b"}
        kubeconfig = self.cluster.outside_kubeconfig.read_text()
        return {
            "benchmark_job": {**place, "stack": self.stack, "scenario": "rehearsal"},
            "cluster": {"kubeconfig": kubeconfig, "context": "", "namespace": self.namespace},
        }

    def deploy(self) -> None:
        """The template as `pulumi up` leaves it, and nothing else of a stack."""
        values = {
            "model": "qwen3-235b-a22b-fp8",
            "topology": "agg-2",
            "scenario": "rehearsal",
            "cluster": {"provider": "doks"},
            "images": {name: simulated_image(name) for name in ("engine", "benchmark")},
        }
        stack = parse_stack(values)
        metadata = {"name": "benchmark", "labels": labels(self.stack, "benchmark")}
        target = {"target.json": json.dumps({"scenario": stack.scenario})}
        self.core.create_namespaced_config_map(self.namespace, {"metadata": {"name": BENCHMARK_TARGET}, "data": target})
        claim = {"metadata": {"name": RESULTS}, "spec": claim_spec(stack)}
        self.core.create_namespaced_persistent_volume_claim(self.namespace, claim)
        cronjob = {"metadata": metadata, "spec": cron_job_spec(stack, self.stack, "Qwen/Qwen3")}
        self.batch.create_namespaced_cron_job(self.namespace, cronjob)
        self._serves()
        accounts = lambda: self.core.list_namespaced_service_account(self.namespace).items  # noqa: E731
        eventually(accounts, "the namespace's service account")

    def _serves(self) -> None:
        """A RayService that says it is ready, and that no KubeRay looks after: there is nothing behind it."""
        custom: Any = client.CustomObjectsApi(self.cluster.api())
        place = ("ray.io", "v1", self.namespace, "rayservices")
        body = ray_service(RAY_SERVICE, "")
        body["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
        custom.create_namespaced_custom_object(*place, body)
        condition = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
        body = {"status": {"conditions": [{**condition, "lastTransitionTime": "2026-11-30T01:00:00Z"}]}}
        custom.patch_namespaced_custom_object_status(*place, RAY_SERVICE, body)

    def terminal(self, *words: str) -> Terminal:
        self.terminals.append(Terminal(self, *words))
        return self.terminals[-1]

    def jobs(self) -> list[Any]:
        return self.batch.list_namespaced_job(self.namespace).items

    def pod(self) -> Any:
        """The benchmark's pod, once it runs."""

        def running() -> Any:
            pods = self.core.list_namespaced_pod(self.namespace, label_selector="batch.kubernetes.io/job-name").items
            return next((pod for pod in pods if pod.status.phase == "Running"), None)

        return eventually(running, "a running benchmark pod")

    def directory(self, pod: Any) -> PodDirectory:
        return self.cluster.pods.directory(self.namespace, pod.metadata.name)

    def readers(self) -> list[Any]:
        return self.core.list_namespaced_pod(self.namespace, label_selector=READER).items

    def end(self, pod: Any, code: int) -> None:
        """The container exits with this code."""
        terminated = {"exitCode": code, "reason": "Error" if code else "Completed"}
        status = {"name": "benchmark", "image": "b", "imageID": "", "ready": False, "restartCount": 0}
        body = {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [{**status, "state": {"terminated": terminated}}],
        }
        self.core.patch_namespaced_pod_status(pod.metadata.name, self.namespace, {"status": body})

    def on_the_volume(self, rates: list[float]) -> Path:
        """A run of the scenario `rehearsal` of which these rates are finished, where the next reader pods see it."""
        files = self.folder / "files"
        shutil.rmtree(files, ignore_errors=True)
        target = Target.model_validate({**TARGET, "stack": self.stack})
        info = RunInfo(run_id=RUN, started=datetime.now(UTC), argv=[], tools={})
        run = create(files / "results", info, target, find_scenario("rehearsal"))
        for rate in rates:
            _finish(run, rate)
        self.cluster.pods.play(Play("results-reader-*", namespace=self.namespace, files=str(files)))
        return run.path


def _finish(run: RunDirectory, rate: float) -> None:
    folder, _ = run.start_rate(rate)
    total = run.scenario.warmup_requests(rate) + run.scenario.measured_requests(rate)
    times = [100.0 + number / rate for number in range(total)]
    requests = [Request(t, t, t + 1, f"p{t}", 256, 32, 100.0, 1000.0, (30.0,), None, 32) for t in times]
    summary = summarize(run.scenario, rate, requests)
    kv = KvProof(verdict="not applicable", reasons=[], requests=total)
    (folder / "command.json").write_text('{"argv": ["aiperf"]}')
    (folder / "inputs.json").write_text("prompt " * 500_000)  # many frames of the exec stream
    run.finish_rate(RateResult(rate=rate, seed=1, summary=summary, kv=kv, findings=[]))
