"""Weights on NFS through Pulumi: volume and claim bind by the real controller, the Job ends when its pod does."""

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiException

from tests.cluster.piece import Piece
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.pods import Play

COMMIT, OTHER_COMMIT = "a" * 40, "b" * 40
SERVER = {"server": "10.0.0.5", "path": "/export"}
NFS = {"mode": "nfs", "revision": COMMIT, "nfs": SERVER}
# A pod's status as a kubelet leaves it, the end of the log as the message (FallbackToLogsOnError).
FAILED = {
    "phase": "Failed",
    "conditions": [{"type": "Ready", "status": "False", "reason": "PodFailed"}],
    "containerStatuses": [
        {
            "name": "weights-download",
            "image": "simulated",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {
                "terminated": {"exitCode": 1, "reason": "Error", "message": f"error: {OTHER_COMMIT!r} is not a commit"}
            },
        }
    ],
}


@pytest.fixture
def piece(tmp_path: Path, cluster: SimulatedCluster, namespace: str) -> Piece:
    cluster.pods.play(Play("weights-download-*", namespace, log="complete\n", outcome="succeeded"))
    return Piece(tmp_path, cluster, namespace, "infra.weights:weights")


def bound_volume(core: Any, piece: Piece) -> Any:
    """The volume of the one claim that there is, which is bound."""
    (claim,) = core.list_namespaced_persistent_volume_claim(piece.namespace).items
    assert claim.status.phase == "Bound"
    return core.read_persistent_volume(claim.spec.volume_name)


def jobs(batch: Any, piece: Piece) -> list[str]:
    return [job.metadata.name for job in batch.list_namespaced_job(piece.namespace).items if job.status.succeeded]


def gone(core: Any, volume: str) -> bool:
    try:
        core.read_persistent_volume(volume)
    except ApiException as error:
        return error.status == 404
    return False


def test_from_nothing_to_full_and_back(piece: Piece, core: Any, batch: Any) -> None:
    up = piece.up(weights=NFS, huggingFaceToken="hf_topsecret")
    assert up.ok, up.text
    volume = bound_volume(core, piece).metadata.name
    assert len(jobs(batch, piece)) == 1
    assert piece.unchanged()

    secret = core.read_namespaced_secret("hugging-face-token", piece.namespace)
    assert base64.b64decode(secret.data["token"]) == b"hf_topsecret"
    state = piece.pulumi("stack export").text
    assert "hugging-face-token" in state
    assert "hf_topsecret" not in state + up.text

    destroyed = piece.pulumi("destroy --yes --skip-preview")
    assert destroyed.ok, destroyed.text
    assert gone(core, volume)
    assert core.list_namespaced_persistent_volume_claim(piece.namespace).items == []

    # The export is as it was: a volume that had stayed would remember its old claim and never bind again.
    again = piece.up(weights=NFS)
    assert again.ok, again.text
    assert bound_volume(core, piece).metadata.name == volume
    assert piece.pulumi("destroy --yes --skip-preview").ok


def test_another_commit_and_another_export(piece: Piece, core: Any, batch: Any) -> None:
    assert piece.up(weights=NFS).ok
    before = jobs(batch, piece)
    up = piece.up(weights={**NFS, "revision": OTHER_COMMIT})
    assert up.ok, up.text
    assert len(jobs(batch, piece)) == 1
    assert jobs(batch, piece) != before

    up = piece.up(weights={**NFS, "revision": OTHER_COMMIT, "nfs": {**SERVER, "path": "/other"}})
    assert up.ok, up.text
    assert bound_volume(core, piece).spec.nfs.path == "/other"
    assert len(jobs(batch, piece)) == 1
    assert piece.pulumi("destroy --yes --skip-preview").ok


def test_a_download_that_fails_says_why_and_the_next_update_tries_again(
    piece: Piece, core: Any, batch: Any, cluster: SimulatedCluster
) -> None:
    cluster.pods.play(Play("weights-download-*", piece.namespace))  # runs until this test ends it
    piece.settings(weights={**NFS, "revision": OTHER_COMMIT})
    process = piece.shell.start("pulumi up --yes --skip-preview --non-interactive --color never")

    def running() -> Any:
        pods = core.list_namespaced_pod(piece.namespace).items
        return next((pod for pod in pods if pod.status.phase == "Running"), None)

    while process.poll() is None and not failed(batch, piece):
        if pod := running():
            core.patch_namespaced_pod_status(pod.metadata.name, piece.namespace, {"status": FAILED})
        time.sleep(0.5)
    text, _ = process.communicate(timeout=30)
    assert process.returncode != 0, text
    assert "[BackoffLimitExceeded]" in text, text
    assert f"{OTHER_COMMIT!r} is not a commit" in text, text

    cluster.pods.play(Play("weights-download-*", piece.namespace, outcome="succeeded"))
    again = piece.pulumi("up --yes --skip-preview")
    assert again.ok, again.text
    assert len(jobs(batch, piece)) == 1
    assert piece.unchanged()
    assert piece.pulumi("destroy --yes --skip-preview").ok


def failed(batch: Any, piece: Piece) -> bool:
    found = batch.list_namespaced_job(piece.namespace).items
    return any(c.type == "Failed" for job in found for c in job.status.conditions or [])
