"""The simulated cluster itself: what the other tests of this tier stand on."""

import base64
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from kubernetes import client, config
from kubernetes.client import ApiClient
from kubernetes.stream import stream

from tests.cluster.conftest import ClusterShell
from tests.cluster.ray_service import FABRIC, TOLERATIONS, RayService, application, container
from tests.cluster.waiting import eventually
from tests.shell import ROOT
from tools.rehearsal import nodes
from tools.rehearsal.binaries import locate
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.pods import COMPLETE, Play


def pod(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"containers": [container("main", {})], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def running(core: Any, namespace: str, name: str) -> Any:
    eventually(lambda: core.read_namespaced_pod(name, namespace).status.phase == "Running", f"{name} runs")
    return core.read_namespaced_pod(name, namespace)


def job(name: str) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [container("main", {})]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def job_pod(core: Any, namespace: str, name: str) -> str:
    found = eventually(
        lambda: core.list_namespaced_pod(namespace, label_selector=f"job-name={name}").items, f"pod of job {name}"
    )
    return found[0].metadata.name


def test_nodes_are_ready_and_offer_what_doks_offers(core: Any) -> None:
    found = {node.metadata.name: node for node in core.list_node().items}
    assert len(found) == 6
    gpu = found["mi325x-0"]
    assert gpu.metadata.labels["doks.digitalocean.com/gpu-model"] == "mi325x"
    assert [(taint.key, taint.effect) for taint in gpu.spec.taints] == [("amd.com/gpu", "NoSchedule")]
    assert gpu.status.allocatable["amd.com/gpu"] == "8"
    assert {name: gpu.status.allocatable[name] for name in FABRIC} == nodes.FABRIC
    assert "amd.com/gpu" not in found["system-0"].status.allocatable
    addresses = {node.status.addresses[0].address for node in found.values()}
    assert len(addresses) == 6


def test_engine_pod_needs_the_toleration_and_a_free_gpu_node(core: Any, namespace: str) -> None:
    engine = [container("engine", {"amd.com/gpu": 8, **FABRIC})]
    core.create_namespaced_pod(namespace, pod("tolerates", containers=engine, tolerations=TOLERATIONS))
    core.create_namespaced_pod(namespace, pod("does-not", containers=engine))
    assert running(core, namespace, "tolerates").spec.node_name.startswith("mi325x-")

    def refused() -> list[str]:
        conditions = core.read_namespaced_pod("does-not", namespace).status.conditions or []
        return [c.message for c in conditions if c.reason == "Unschedulable"]

    assert "untolerated taint" in eventually(refused, "the scheduler's verdict")[0]


def test_nodes_of_other_clouds(core: Any, api: ApiClient, namespace: str) -> None:
    nodes.add_nodes(api, [nodes.oke_mi300x_node("oke-0", "other"), nodes.tensorwave_node("tensorwave-0", "other")])
    for name, resource in (("oke-0", {"nvidia.com/rdma-vf": 8}), ("tensorwave-0", {"rdma/ib": 1})):
        engine = [container("engine", {"amd.com/gpu": 8, **resource})]
        core.create_namespaced_pod(namespace, pod(name, containers=engine, tolerations=TOLERATIONS))
        assert running(core, namespace, name).spec.node_name == name
    nodes.remove_nodes(api, "other")
    left = {node.metadata.name for node in core.list_node().items}
    assert not left & {"oke-0", "tensorwave-0"}
    eventually(lambda: not core.list_namespaced_pod(namespace).items, "the nodes' pods are gone")


@pytest.fixture
def service(api: ApiClient, namespace: str) -> RayService:
    return RayService(api, namespace)


def test_ray_service_becomes_ready_through_the_operator(core: Any, namespace: str, service: RayService) -> None:
    service.create()
    eventually(service.ready, "RayService is Ready", 90)
    assert service.application()["status"] == "RUNNING"
    worker = core.list_namespaced_pod(namespace, label_selector="ray.io/node-type=worker").items[0]
    assert worker.spec.node_name.startswith("mi325x-")
    assert worker.status.pod_ip == nodes.address_of(worker.spec.node_name)
    services = core.list_namespaced_service(namespace).items
    assert f"{service.name}-serve-svc" in {found.metadata.name for found in services}


def test_dashboard_wants_the_clusters_token(
    core: Any, namespace: str, service: RayService, shell: ClusterShell
) -> None:
    service.create()
    eventually(service.ready, "RayService is Ready", 90)
    head = heads(core, namespace)[0]
    asked = f"curl -s http://{head.status.pod_ip}:8265/api/serve/applications/"
    assert "Unauthorized" in shell.run(asked).text
    assert "Unauthorized" in shell.run(f"{asked} -H 'Authorization: Bearer wrong'").text
    secret = core.read_namespaced_secret(head.metadata.labels["ray.io/cluster"], namespace)
    token = base64.b64decode(secret.data["auth_token"]).decode()
    details = json.loads(shell.run(f'{asked} -H "Authorization: Bearer {token}"').text)
    assert details["applications"]["llm"]["deployed_app_config"] == application()


def test_ray_service_that_never_becomes_ready(cluster: SimulatedCluster, namespace: str, service: RayService) -> None:
    cluster.ray.set("DEPLOY_FAILED", "engine core failed to start", namespace=namespace)
    service.create()
    eventually(lambda: service.application().get("status") == "DEPLOY_FAILED", "KubeRay sees the failure", 90)
    assert service.application()["message"] == "engine core failed to start"
    assert not service.ready()


def test_engines_wait_for_gpus_that_no_worker_has(service: RayService) -> None:
    service.create(replicas=2, workers=1)

    def waits() -> bool:
        deployments = service.application().get("serveDeploymentStatuses", {})
        return any("waiting for resources" in d.get("message", "") for d in deployments.values())

    eventually(waits, "Serve waits for 8 more GPUs", 90)
    assert not service.ready()


def test_a_new_head_is_a_fresh_ray(core: Any, namespace: str, service: RayService) -> None:
    service.create()
    eventually(service.ready, "RayService is Ready", 90)
    before, deployed = heads(core, namespace)[0].metadata, deployments_by_kuberay(core, namespace)
    core.delete_namespaced_pod(before.name, namespace)

    def deployed_again() -> bool:
        uids = {head.metadata.uid for head in heads(core, namespace)}
        return bool(uids - {before.uid}) and deployments_by_kuberay(core, namespace) > deployed

    eventually(deployed_again, "KubeRay deploys to a new head")
    eventually(service.ready, "RayService is Ready again", 90)


def deployments_by_kuberay(core: Any, namespace: str) -> int:
    """How often KubeRay says that it has handed an application to a Ray cluster."""
    events = core.list_namespaced_event(namespace, field_selector="reason=UpdatedServeApplications").items
    return sum(event.count or 1 for event in events)


def heads(core: Any, namespace: str) -> list[Any]:
    return core.list_namespaced_pod(namespace, label_selector="ray.io/node-type=head").items


def claim(name: str, storage_class: str | None, mode: str = "ReadWriteOnce") -> dict[str, Any]:
    spec: dict[str, Any] = {"accessModes": [mode], "resources": {"requests": {"storage": "10Gi"}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(("storage_class", "left"), [(None, False), ("do-block-storage-retain", True)])
def test_volume_lives_as_its_reclaim_policy_says(
    core: Any, namespace: str, storage_class: str | None, left: bool
) -> None:
    core.create_namespaced_persistent_volume_claim(namespace, claim("data", storage_class))

    def bound() -> str | None:
        found = core.read_namespaced_persistent_volume_claim("data", namespace)
        return found.spec.volume_name if found.status.phase == "Bound" else None

    volume = eventually(bound, "the claim is bound")
    core.delete_namespaced_persistent_volume_claim("data", namespace)

    def phase() -> str:
        found = [v for v in core.list_persistent_volume().items if v.metadata.name == volume]
        return found[0].status.phase if found else "gone"

    eventually(lambda: phase() == ("Released" if left else "gone"), f"{volume} after its claim")
    if left:
        core.delete_persistent_volume(volume)


def test_block_storage_refuses_shared_access(core: Any, namespace: str) -> None:
    core.create_namespaced_persistent_volume_claim(namespace, claim("shared", None, "ReadWriteMany"))

    def reasons() -> list[str]:
        return [e.message for e in core.list_namespaced_event(namespace).items if e.reason == "ProvisioningFailed"]

    assert "not supported" in eventually(reasons, "an event")[0]
    assert core.read_namespaced_persistent_volume_claim("shared", namespace).status.phase == "Pending"


def test_job_logs_and_results_follow_a_play(
    core: Any, batch: Any, cluster: SimulatedCluster, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "summary.json").write_text('{"ttft_ms": 1}')
    cluster.pods.play(Play("load-*", namespace, log="warming up\n", files=str(tmp_path)))
    batch.create_namespaced_job(namespace, job("load"))
    name = job_pod(core, namespace, "load")
    running(core, namespace, name)
    lines = core.read_namespaced_pod_log(name, namespace, follow=True, _preload_content=False, _request_timeout=60)
    cluster.pods.directory(namespace, name).append_log("done\n")

    fetched = stream(
        core.connect_get_namespaced_pod_exec,
        name,
        namespace,
        command=["sh", "-c", "cd /results && tar cf - . | base64"],
        stdout=True,
        stderr=True,
        stdin=False,
        tty=False,
    )
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(fetched))) as archive:
        assert "./summary.json" in archive.getnames()
    assert batch.read_namespaced_job("load", namespace).status.succeeded is None

    core.patch_namespaced_pod(name, namespace, {"metadata": {"annotations": {COMPLETE: "succeeded"}}})
    assert lines.read().decode() == "warming up\ndone\n"  # ends with the pod
    eventually(lambda: batch.read_namespaced_job("load", namespace).status.succeeded, "the job succeeds")
    assert core.read_namespaced_pod_log(name, namespace, tail_lines=1) == "done\n"


def test_a_play_lets_a_job_fail(core: Any, batch: Any, cluster: SimulatedCluster, namespace: str) -> None:
    cluster.pods.play(Play("gate-*", namespace, log="UCX ERROR\n", outcome="failed", after_s=0.5))
    batch.create_namespaced_job(namespace, {**job("gate"), "spec": {**job("gate")["spec"], "backoffLimit": 0}})

    def failed() -> bool:
        conditions = batch.read_namespaced_job("gate", namespace).status.conditions or []
        return any(c.type == "Failed" for c in conditions)

    eventually(failed, "the job fails")
    name = job_pod(core, namespace, "gate")
    assert core.read_namespaced_pod_log(name, namespace) == "UCX ERROR\n"


def test_restricted_user_may_do_what_its_rules_say_and_no_more(
    core: Any, cluster: SimulatedCluster, namespace: str, shell: ClusterShell
) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    path = cluster.restricted_kubeconfig(f"reader-{namespace}", rules, namespace)
    kubectl = f"{locate('kubectl')} --kubeconfig {path}"
    assert "No resources found" in shell.run(f"{kubectl} get pods -n {namespace}").text
    answer = shell.run(f"{kubectl} get nodes")
    assert "Forbidden" in answer.text
    assert not answer.ok
    with config.new_client_from_config(str(path)) as outside:  # the same file is good here
        assert client.CoreV1Api(outside).list_namespaced_pod(namespace).items == []


def test_server_killed_and_started_again_knows_everything(core: Any, cluster: SimulatedCluster, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "kept"}, "data": {"key": "value"}})
    cluster.stop("kube-apiserver", kill=True)
    with pytest.raises(Exception, match="Max retries"):
        core.read_namespaced_config_map("kept", namespace)
    cluster.start("kube-apiserver")
    assert core.read_namespaced_config_map("kept", namespace).data == {"key": "value"}
    core.create_namespaced_pod(namespace, pod("after"))  # scheduler, kwok and kubelet have found back
    running(core, namespace, "after")


def mentioning(directory: Path) -> list[psutil.Process]:
    """Processes that have this state directory in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and str(directory) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_two_clusters_do_not_meet_and_leave_nothing(cluster: SimulatedCluster, tmp_path: Path) -> None:
    with SimulatedCluster(tmp_path / "other", gpu_nodes=1, cpu_nodes=0, operator=False) as other:
        with other.api() as there, cluster.api() as here:
            assert len(client.CoreV1Api(there).list_node().items) == 1
            assert len(client.CoreV1Api(here).list_node().items) == 6
        holder = other.namespace.pid
        assert mentioning(other.directory)
    assert not mentioning(other.directory)
    assert not psutil.pid_exists(holder)


OWNER = """
import sys, time
from pathlib import Path
from tools.rehearsal.binaries import locate
from tools.rehearsal.cluster import SimulatedCluster
with SimulatedCluster(Path(sys.argv[1]), gpu_nodes=0, cpu_nodes=0, operator=False) as cluster:
    print(cluster.namespace.pid, flush=True)
    time.sleep(600)
"""


def test_a_killed_owner_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "orphan"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(directory)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    holder = int(owner.stdout.readline())
    assert len(mentioning(directory)) > 5
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    eventually(lambda: not mentioning(directory), "every process has ended", 10)
    eventually(lambda: not psutil.pid_exists(holder), "the namespace is gone", 10)


def rehearsal(arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """`python -m tools.rehearsal ARGUMENTS`, outside of any cluster."""
    command = [sys.executable, "-m", "tools.rehearsal", *shlex.split(arguments)]
    environment = {**os.environ, **env}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_shell_runs_a_command_in_a_cluster_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    command = "'kubectl get nodes -o name; pulumi whoami -v; pulumi plugin ls; exit 3'"
    answer = rehearsal(f"shell --gpu-nodes 1 -- bash -c {command}", TMPDIR=str(tmp_path))
    assert answer.returncode == 3, answer.stderr
    assert "node/mi325x-0\nnode/system-0\nnode/system-1\n" in answer.stdout
    assert f"Backend URL: file://{tmp_path}" in answer.stdout
    assert "kubernetes  resource" in answer.stdout
    assert not list(tmp_path.iterdir())
    assert not mentioning(tmp_path)


@pytest.mark.parametrize("missing", ["unshare", "nsenter", "ip", "openssl"])
def test_a_missing_program_is_one_line(tmp_path: Path, missing: str) -> None:
    for name in {"unshare", "nsenter", "ip", "openssl"} - {missing}:
        (tmp_path / name).symlink_to(f"/bin/{name}")
    answer = rehearsal("shell -- true", PATH=str(tmp_path), TMPDIR=str(tmp_path))
    assert answer.returncode == 1
    assert re.fullmatch(rf"error: .*`{missing}` is not on PATH; install .*\n", answer.stderr)


def test_programs_that_are_not_built_are_one_line(tmp_path: Path) -> None:
    answer = rehearsal("shell -- true", PD_MI325X_CACHE=str(tmp_path / "empty"), TMPDIR=str(tmp_path))
    assert answer.returncode == 1
    assert re.fullmatch(r"error: etcd: .*; run `make toolchain-cluster`\n", answer.stderr)
    assert not mentioning(tmp_path)
