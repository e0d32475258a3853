"""The simulated cluster's volumes, Jobs, logs and users, and its API server when it comes back."""

import base64
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.stream import stream

from tests.cluster.conftest import ClusterShell
from tests.cluster.objects import job, job_pod, pod, running
from tests.cluster.waiting import eventually
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.pods import COMPLETE, Play
from tools.toolchain.items import path as toolchain_path


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
    kubectl = f"{toolchain_path('kubectl')} --kubeconfig {path}"
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
