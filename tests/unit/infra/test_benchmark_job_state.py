"""What Kubernetes says about a Job and its pod, and what is made of it."""

from typing import Any

import pytest

from infra.benchmark_job.job import job_from, next_name
from infra.benchmark_job.pod_state import Ended, Running, Waiting, job_finished, job_state, newest
from infra.benchmark_job.reader_pod import manifest, results_folder
from infra.benchmark_template import cron_job_spec
from serving.stack import parse_stack


def pod(container: dict[str, Any] | None = None, node: str = "system-0", **status: Any) -> dict[str, Any]:
    statuses = [{"name": "benchmark", "state": container}] if container else []
    return {"metadata": {}, "spec": {"nodeName": node}, "status": {"containerStatuses": statuses, **status}}


def job(kind: str = "", **condition: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", **condition}] if kind else []}}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/6 nodes are available: 2 Insufficient cpu.",
}
DENIED = {
    "type": "Warning",
    "reason": "FailedCreate",
    "message": "exceeded quota: pods=0",
    "lastTimestamp": "2026-11-30",
}


@pytest.mark.parametrize(
    ("seen", "said", "stuck"),
    [
        (pod(node="", conditions=[UNSCHEDULABLE]), "not scheduled: 0/6 nodes are available: 2 Insufficient cpu", False),
        (pod(node=""), "waits for the scheduler", False),
        (pod({"waiting": {"reason": "ContainerCreating"}}), "starts on system-0", False),
        (pod({"waiting": {"reason": "ErrImagePull", "message": "not\nfound"}}), "ErrImagePull: not found", True),
        (pod({"waiting": {"reason": "ImagePullBackOff"}}), "does not start: ImagePullBackOff", True),
        (pod({"waiting": {"reason": "CreateContainerConfigError"}}), "CreateContainerConfigError", True),
        (None, "no pod yet", False),
    ],
)
def test_why_it_waits(seen: dict[str, Any] | None, said: str, stuck: bool) -> None:
    state = job_state(job(), seen, "benchmark")
    assert isinstance(state, Waiting)
    assert said in state.reason
    assert state.stuck is stuck


def test_events_say_what_the_status_does_not() -> None:
    older = {"type": "Warning", "reason": "FailedMount", "message": "old", "lastTimestamp": "2026-11-29"}
    newer = {**older, "message": "volume is in use", "lastTimestamp": "2026-11-30"}
    state = job_state(job(), pod({"waiting": {"reason": "ContainerCreating"}}), "benchmark", [newer, older])
    assert state == Waiting("the container starts on system-0: FailedMount: volume is in use")
    assert job_state(job(), None, "benchmark", [DENIED]) == Waiting(
        "there is no pod yet: FailedCreate: exceeded quota: pods=0", stuck=True
    )


@pytest.mark.parametrize("code", [0, 1, 3, 137])
def test_the_containers_exit_code_is_what_counts(code: int) -> None:
    terminated = pod({"terminated": {"exitCode": code, "reason": "Error"}}, phase="Failed")
    assert job_state(job("Failed", reason="BackoffLimitExceeded"), terminated, "benchmark") == Ended(code, "Error")


def test_an_end_without_an_exit_code_says_why() -> None:
    deadline = job("Failed", reason="DeadlineExceeded", message="Job was active longer than specified deadline")
    state = job_state(deadline, None, "benchmark")
    assert state == Ended(None, "DeadlineExceeded: Job was active longer than specified deadline")
    evicted = pod(phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    assert job_state(job("Failed", reason="BackoffLimitExceeded"), evicted, "benchmark") == Ended(
        None, "Evicted: The node was low on resource: memory."
    )
    assert job_state(job("Complete"), None, "benchmark") == Ended(0)


def test_it_runs() -> None:
    assert job_state(job(), pod({"running": {}}, phase="Running"), "benchmark") == Running()


def test_a_job_is_finished_by_its_condition() -> None:
    assert job_finished(job("Complete"))
    assert job_finished(job("Failed"))
    assert not job_finished(job("FailureTarget"))
    assert not job_finished(job())


def test_the_pod_made_last_counts() -> None:
    pods = [{"metadata": {"creationTimestamp": time}} for time in ("2026-11-30T01:00:00Z", "2026-11-30T02:00:00Z")]
    assert newest(pods) is pods[1]
    assert newest([]) is None


def test_names_count_on() -> None:
    assert next_name("benchmark", []) == "benchmark-1"
    assert next_name("benchmark", ["benchmark-9", "benchmark-10", "benchmark-mine", "other-77"]) == "benchmark-11"


@pytest.fixture
def cronjob() -> dict[str, Any]:
    values = {
        "model": "qwen3-235b-a22b-fp8",
        "topology": "agg-2",
        "scenario": "qwen-16k-1k",
        "cluster": {"provider": "doks"},
        "images": {**{name: f"{name}@sha256:{'1' * 64}" for name in ("engine", "benchmark")}, "pullSecret": "registry"},
    }
    metadata = {"name": "benchmark", "namespace": "llm", "uid": "1234"}
    return {"metadata": metadata, "spec": cron_job_spec(parse_stack(values), "agg-2", "Qwen/Qwen3")}


def test_a_job_is_what_kubectl_would_make_of_the_cronjob(cronjob: dict[str, Any]) -> None:
    template = cronjob["spec"]["jobTemplate"]
    before = [*template["spec"]["template"]["spec"]["containers"][0]["args"]]
    made = job_from(cronjob, "benchmark-4", ["--rates", "1"], 77)
    assert made["metadata"]["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}
    assert made["metadata"]["labels"] == template["metadata"]["labels"]
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "benchmark", "uid": "1234", "controller": True}
    ]
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == [*before, "--rates", "1"]
    assert made["spec"]["activeDeadlineSeconds"] == 77
    assert template["spec"]["template"]["spec"]["containers"][0]["args"] == before  # the template itself stays


def test_the_reader_sees_the_volume_and_may_not_write(cronjob: dict[str, Any]) -> None:
    reader = manifest(cronjob, "agg-2", "results")
    spec, pod = reader["spec"], cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["volumes"] == [{"name": "results", "persistentVolumeClaim": {"claimName": "results", "readOnly": True}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "results", "mountPath": "/results", "readOnly": True}]
    assert spec["containers"][0]["image"] == f"benchmark@sha256:{'1' * 64}"
    for same in ("securityContext", "nodeSelector", "imagePullSecrets", "automountServiceAccountToken"):
        assert spec[same] == pod[same]
    assert "env" not in spec["containers"][0]
    assert spec["activeDeadlineSeconds"] == 3600
    assert reader["metadata"]["labels"]["app.kubernetes.io/component"] == "results"  # not taken for a benchmark
    assert results_folder(cronjob) == "/results"
