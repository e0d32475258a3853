"""`make benchmark` and `make results` on Kubernetes, from the Job to the report, with a terminal that may be closed.

Real: API server, Job and CronJob controllers, scheduler, volume claims, exec, the copied files. Simulated: the
container, whose log and exit code a test decides.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.run_directory import open_run
from tests.cluster.benchmark_stage import RUN, STACK, Stage
from tests.cluster.conftest import ClusterShell
from tests.cluster.deployment import write_stack
from tests.cluster.waiting import eventually
from tools.rehearsal.cluster import SimulatedCluster


@pytest.fixture
def stage(cluster: SimulatedCluster, namespace: str, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(cluster, namespace, tmp_path)
    made.deploy()
    yield made
    for terminal in made.terminals:
        terminal.close()


def content(folder: Path) -> dict[str, bytes]:
    written_again = (folder / "report.html", folder / "summary.json")
    files = (path for path in folder.rglob("*") if path.is_file() and path not in written_again)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_from_the_job_to_the_report(stage: Stage) -> None:
    terminal = stage.terminal("run", "--rates", "1,1.5,2")
    pod = stage.pod()
    (job,) = stage.jobs()
    assert job.metadata.name == "benchmark-1"
    assert job.metadata.annotations["cronjob.kubernetes.io/instantiate"] == "manual"
    assert [owner.kind for owner in job.metadata.owner_references] == ["CronJob"]
    assert pod.spec.node_name.startswith("system-")
    assert pod.spec.containers[0].args[-2:] == ["--rates", "1,1.5,2"]
    stage.directory(pod).append_log(f"run directory: /results/{STACK}/{RUN}\n")
    stage.directory(pod).append_log("1 req/s (1 of 3): 7 of 36 requests answered\n")
    terminal.shows("7 of 36 requests answered")  # while it runs
    there = stage.on_the_volume([1, 1.5, 2])
    stage.directory(pod).append_log("the summary, which the benchmark prints itself\n")
    stage.end(pod, 0)
    assert terminal.ends() == 0, terminal.text
    assert terminal.text.count("7 of 36 requests answered") == 1
    assert terminal.text.count("the summary") == 1
    assert "latencies p50/p90" not in terminal.text  # not a second time
    assert f"report: {stage.results}/{STACK}/{RUN}/report.html" in terminal.text
    assert content(stage.results / STACK / RUN) == content(there)
    assert (stage.results / STACK / RUN / "report.html").stat().st_size > 10_000
    assert stage.readers() == []
    assert [*stage.results.glob(".copying*")] == []
    second = stage.terminal("run")  # the Job has finished too, so the next one may start
    second.shows("benchmark-2 measures agg-2")


@pytest.mark.parametrize("code", [3, 1])
def test_its_exit_code_is_passed_on(stage: Stage, code: int) -> None:
    stage.on_the_volume([1, 1.5, 2] if code == 3 else [1])
    terminal = stage.terminal("run")
    pod = stage.pod()
    stage.directory(pod).append_log(f"run directory: /results/{STACK}/{RUN}\n")
    stage.directory(pod).append_log("error: http://llm:8000 does not answer\n" if code == 1 else "a fault\n")
    stage.end(pod, code)
    assert terminal.ends() == code, terminal.text
    assert open_run(stage.results / STACK / RUN).complete is (code == 3)
    if code == 1:
        why = "error: benchmark-1 ended with exit code 1: http://llm:8000 does not answer; 1 of 3 rates kept"
        assert why in terminal.text
    assert stage.readers() == []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGHUP])
def test_a_closed_terminal_loses_nothing(stage: Stage, ending: int) -> None:
    """Ctrl-C and a closed window leave the Job; a second one is refused; `make results` goes on where it is."""
    first = stage.terminal("run")
    pod = stage.pod()
    stage.directory(pod).append_log(f"run directory: /results/{STACK}/{RUN}\nearly\n")
    first.shows("early")
    first.signal(ending)
    assert first.ends(15) == 130
    assert "benchmark-1 goes on without this terminal; come back with `make results`" in first.text
    assert f"kubectl delete job benchmark-1 -n {stage.namespace}" in first.text
    refused = stage.terminal("run")
    assert refused.ends() == 1
    assert "error: benchmark-1 measures agg-2 already; follow it with `make results`" in refused.text
    assert len(stage.jobs()) == 1
    back = stage.terminal("results")
    back.shows("early")
    stage.on_the_volume([1, 1.5, 2])
    stage.end(pod, 0)
    assert back.ends() == 0, back.text
    assert open_run(stage.results / STACK / RUN).complete
    again = stage.terminal("results")  # when everything is over and here
    assert again.ends() == 0, again.text
    assert "0 new" in again.text
    assert "latencies p50/p90" in again.text  # nobody has shown it in this terminal


def test_an_api_server_that_dies_while_the_log_is_followed(stage: Stage) -> None:
    terminal = stage.terminal("run")
    pod = stage.pod()
    stage.directory(pod).append_log(f"run directory: /results/{STACK}/{RUN}\nbefore\n")
    terminal.shows("before")
    stage.cluster.stop("kube-apiserver", kill=True)
    try:
        terminal.shows("benchmark-1 goes on, but cannot be seen: Kubernetes API")
        stage.directory(pod).append_log("meanwhile\n")
    finally:
        stage.cluster.start("kube-apiserver")
    terminal.shows("meanwhile")
    stage.on_the_volume([1, 1.5, 2])
    stage.end(pod, 0)
    assert terminal.ends() == 0, terminal.text
    assert [terminal.text.count(f"\n{line}\n") for line in ("before", "meanwhile")] == [1, 1]


def test_it_says_why_it_waits_and_leaves_no_reader(stage: Stage) -> None:
    """Nodes that a pod asks for and that do not exist: first for the benchmark, then for the pod that reads."""
    nowhere = {"spec": {"nodeSelector": {"doks.digitalocean.com/node-pool": "nowhere"}}}
    template = {"spec": {"jobTemplate": {"spec": {"template": nowhere}}}}
    stage.batch.patch_namespaced_cron_job("benchmark", stage.namespace, template)
    terminal = stage.terminal("run")
    terminal.shows("benchmark-1: the pod is not scheduled: 0/")
    terminal.signal(signal.SIGINT)
    assert terminal.ends(15) == 130
    stage.batch.delete_namespaced_job("benchmark-1", stage.namespace, propagation_policy="Background")
    eventually(lambda: not stage.jobs(), "the Job is gone")
    reading = stage.terminal("results")
    reading.shows("reading the results volume: the pod is not scheduled: 0/")
    assert len(stage.readers()) == 1
    reading.signal(signal.SIGINT)
    assert reading.ends(15) == 130
    assert "the runs stay on the results volume" in reading.text
    assert stage.readers() == []


def test_a_job_that_is_deleted_is_over(stage: Stage) -> None:
    terminal = stage.terminal("run")
    stage.directory(stage.pod()).append_log(f"run directory: /results/{STACK}/{RUN}\n")
    terminal.shows(RUN)
    stage.on_the_volume([1])
    stage.batch.delete_namespaced_job("benchmark-1", stage.namespace, propagation_policy="Background")
    assert terminal.ends() == 1
    assert "error: benchmark-1 ended: the Job was deleted; 1 of 3 rates kept, RESUME=1 goes on" in terminal.text
    assert stage.readers() == []


def test_as_a_person_types_it(shell: ClusterShell, cluster: SimulatedCluster, tmp_path: Path) -> None:
    """Deployed by Pulumi, which says where the stack is; the runs outlive it."""
    write_stack(shell, "measured")
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    stage = Stage(cluster, "measured", tmp_path, "measured")
    there = stage.on_the_volume([1, 1.5, 2])
    make = ".venv/bin/python -m infra.benchmark_job.dispatch"  # what the Makefile runs, once there is a toolchain
    measuring = shell.start(f"{make} benchmark --scenario rehearsal")
    pod = stage.pod()
    assert pod.spec.containers[0].args[-2:] == ["--scenario", "rehearsal"]
    stage.directory(pod).append_log(f"run directory: /results/measured/{RUN}\n")
    stage.end(pod, 0)
    text, _ = measuring.communicate(timeout=90)
    assert measuring.returncode == 0, text
    copied = shell.checkout / "results" / "measured" / RUN
    assert f"report: results/measured/{RUN}/report.html" in text
    assert content(copied) == content(there)
    assert shell.run("pulumi preview --expect-no-changes").ok
    down = shell.run("pulumi destroy --yes --skip-preview", 300)
    assert down.ok, down.text
    assert stage.core.read_namespaced_persistent_volume_claim("results", "measured").status.phase == "Bound"
    assert stage.jobs() == []
