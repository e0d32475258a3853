"""Which way a campaign measures: a Job that is started or come back to, or a run from this machine that is finished."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.errors import BenchmarkError
from benchmarks.run_directory import RunDirectory, RunInfo, create
from benchmarks.scenario_files import find_scenario
from benchmarks.target import Target
from infra.benchmark_job.measure import Interrupted, Measured
from infra.campaign import measure as campaign
from infra.campaign.measure import Begun, Wish, measure

LAYOUT = {"kind": "aggregated", "topology": "agg-2", "platform": "cpu", "dummy_weights": True, "engine": {}}
REPLICAS = {"prefill": 0, "decode": 0, "aggregated": 2, "gpus": 0}
SERVICE = {"url": "http://127.0.0.1:9", "model": "m", "tokenizer": "t", "scenario": "rehearsal", "kv": None}
TARGET = {"stack": "s", **SERVICE, "deployment": {**LAYOUT, **REPLICAS}, "versions": {}, "commit": ""}
PLACE = {"namespace": "n", "cronjob": "benchmark", "results_claim": "results", "stack": "s", "scenario": "rehearsal"}
ON_KUBERNETES = {"benchmark": TARGET, "benchmark_job": PLACE, "cluster": {"kubeconfig": "", "context": ""}}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    info = RunInfo(run_id="r", started=datetime.now(UTC), argv=[], tools={})
    return create(tmp_path, info, Target.model_validate(TARGET), find_scenario("rehearsal"))


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, run: RunDirectory) -> list[str]:
    """What was done on Kubernetes, where a Job is."""
    calls: list[str] = []

    def note(name: str) -> Any:
        return lambda *_: calls.append(name) or Measured(0, run)

    monkeypatch.setattr(campaign.on_kubernetes, "run", note("run"))
    monkeypatch.setattr(campaign.on_kubernetes, "come_back", note("come back"))
    monkeypatch.setattr(campaign, "KubeApi", lambda _: None)
    monkeypatch.setattr(campaign, "Jobs", lambda *_: JobsThere())
    return calls


class JobsThere:
    found = ("benchmark-1",)

    def all(self) -> list[str]:
        return list(self.found)


def measured(tmp_path: Path, outputs: dict[str, Any], begun: Begun | None) -> tuple[RunDirectory, list[RunDirectory]]:
    seen: list[RunDirectory] = []
    return measure(outputs, Wish(tmp_path, None, None), Console(), begun, seen.append), seen


def test_a_stack_on_kubernetes_is_measured_by_a_job(tmp_path: Path, run: RunDirectory, called: list[str]) -> None:
    assert measured(tmp_path, ON_KUBERNETES, None) == (run, [run])
    assert called == ["run"]


def test_the_job_of_a_killed_campaign_is_come_back_to(
    tmp_path: Path, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(tmp_path, ON_KUBERNETES, Begun(None))
    monkeypatch.setattr(JobsThere, "found", ())
    measured(tmp_path, ON_KUBERNETES, Begun(None))  # killed before it had one
    assert called == ["come back", "run"]


def test_ctrl_c_while_a_job_is_followed_is_one_for_the_campaign(
    tmp_path: Path, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise Interrupted("goes on without this terminal")

    monkeypatch.setattr(campaign.on_kubernetes, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measured(tmp_path, ON_KUBERNETES, None)


def test_a_job_without_a_run_is_no_measurement(
    tmp_path: Path, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign.on_kubernetes, "run", lambda *_: Measured(0, None))
    with pytest.raises(BenchmarkError, match="make results"):
        measured(tmp_path, ON_KUBERNETES, None)


def test_a_stack_that_serves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="nothing to measure"):
        measured(tmp_path, {"nodes": 4}, None)


@pytest.mark.parametrize(("begun", "resume"), [(None, False), (Begun(None), False), (True, True)])
def test_a_begun_run_is_finished_and_another_one_is_made_anew(
    tmp_path: Path, run: RunDirectory, monkeypatch: pytest.MonkeyPatch, begun: Any, resume: bool
) -> None:
    asked: list[bool] = []

    def prepare(*arguments: Any, resume: bool) -> RunDirectory:
        asked.append(resume)
        return run

    monkeypatch.setattr(campaign.runner, "prepare", prepare)
    monkeypatch.setattr(campaign.runner, "execute", lambda *_: [])
    monkeypatch.setattr(campaign, "find_aiperf", lambda: Path("aiperf"))
    monkeypatch.setattr(campaign, "write_report", lambda _: "report.html")
    found, seen = measured(tmp_path, {"benchmark": TARGET}, Begun(run.path) if begun is True else begun)
    assert (found, seen) == (run, [run])
    assert asked == [resume]


def test_a_run_that_only_lacked_its_report_is_not_measured_again(
    tmp_path: Path, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(campaign.runner, "prepare", never)
    monkeypatch.setattr(campaign, "find_aiperf", lambda: Path("aiperf"))
    monkeypatch.setattr(campaign, "print_summary", lambda *_: None)
    monkeypatch.setattr(campaign, "write_report", lambda _: "report.html")
    monkeypatch.setattr(RunDirectory, "complete", property(lambda _: True))
    found, _ = measured(tmp_path, {"benchmark": TARGET}, Begun(run.path))
    assert found.path == run.path
