"""Where engines find their weights, what fills the export, and that a token is never plain."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pulumi
import pytest
from registrations import NAMES, Registration, is_secret, program_registers, registered, stack

from infra.kubernetes_program import deploy_on_kubernetes
from infra.weights import weights
from serving.errors import ConfigError
from serving.weights import PodWeights, claim_name, download_name, download_seconds, weights_volume

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NFS = {"mode": "nfs", "revision": COMMIT, "nfs": {"server": "10.0.0.5", "path": "/export"}}
TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face-token", "key": "token"}}}


def made(**settings: Any) -> dict[str, Registration]:
    return {seen.kind: seen for seen in registered(lambda opts: weights(stack(**settings), *NAMES, opts))}


def pod(**settings: Any) -> PodWeights:
    return weights_volume(stack(**settings))


@pytest.mark.parametrize(
    "mode",
    [{"mode": "dummy"}, {"mode": "local", "path": "/scratch/qwen"}, {"mode": "hub", "revision": COMMIT}],
    ids=lambda mode: mode["mode"],
)
def test_only_nfs_needs_objects(mode: dict[str, str]) -> None:
    assert made(weights=mode) == {}


def test_dummy_weights_take_nothing_but_configuration_and_tokenizer() -> None:
    assert pod() == PodWeights("Qwen/Qwen3-235B-A22B-FP8", {"load_format": "dummy"})


def test_local_weights_are_mounted_read_only_from_a_directory_that_must_exist() -> None:
    found = pod(weights={"mode": "local", "path": "/scratch/qwen"})
    assert found.model_source == "/models/qwen3-235b-a22b-fp8"
    assert found.volumes == [{"name": "weights", "hostPath": {"path": "/scratch/qwen", "type": "Directory"}}]
    assert found.mounts == [{"name": "weights", "mountPath": found.model_source, "readOnly": True}]
    assert found.env == [{"name": "HF_HUB_OFFLINE", "value": "1"}]


def test_weights_on_nfs_are_read_where_the_job_puts_them() -> None:
    found = pod(weights=NFS)
    assert found.model_source == f"/models/Qwen--Qwen3-235B-A22B-FP8/{COMMIT}"
    claim = claim_name(stack(weights=NFS))
    assert found.volumes == [{"name": "weights", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}]
    assert found.mounts == [{"name": "weights", "mountPath": "/models", "readOnly": True}]
    assert found.env == [{"name": "HF_HUB_OFFLINE", "value": "1"}]
    arguments = container(made(weights=NFS)["Job"])["args"]
    assert arguments[:5] == ["Qwen/Qwen3-235B-A22B-FP8", "--revision", COMMIT, "--directory", found.model_source]


def test_the_hub_fills_a_cache_that_holds_the_model_at_its_commit() -> None:
    found = pod(weights={"mode": "hub", "revision": COMMIT}, huggingFaceToken="hf_secret")
    assert found.model_source == "Qwen/Qwen3-235B-A22B-FP8"
    assert found.engine_arguments == {"revision": COMMIT}
    assert found.env == [{"name": "HF_HOME", "value": "/var/cache/huggingface"}, TOKEN]
    limit = int(found.volumes[0]["emptyDir"]["sizeLimit"].removesuffix("Gi")) * 2**30
    assert 237e9 < limit < 300e9
    assert found.mounts == [{"name": "weights", "mountPath": "/var/cache/huggingface"}]


@pytest.mark.parametrize("mode", [NFS, {"mode": "hub", "revision": COMMIT}], ids=["nfs", "hub"])
def test_what_is_not_on_the_hub_cannot_be_downloaded(mode: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^weights\.mode: .*no repository"):
        pod(weights=mode, modelSource="/models/mine")


def test_token_is_a_secret_and_appears_nowhere_else() -> None:
    found = made(weights=NFS, huggingFaceToken="hf_secret")
    secret = found["Secret"]
    assert is_secret(secret.wire["stringData"])
    assert secret.inputs["metadata"]["name"] == "hugging-face-token"
    plain = [seen.wire for kind, seen in found.items() if kind != "Secret"]
    assert "hf_secret" not in str(plain)
    assert TOKEN in container(found["Job"])["env"]
    assert "hf_secret" not in str(asdict(pod(weights=NFS, huggingFaceToken="hf_secret")))


def test_no_secret_without_a_token() -> None:
    found = made(weights=NFS)
    assert set(found) == {"PersistentVolume", "PersistentVolumeClaim", "Job"}
    assert "HF_TOKEN" not in str(found["Job"].inputs)


def test_volume_is_for_this_claim_and_for_no_provisioner() -> None:
    found = made(weights=NFS)
    volume, claim = found["PersistentVolume"].inputs, found["PersistentVolumeClaim"].inputs
    assert volume["metadata"]["name"] == f"pd-space-{claim['metadata']['name']}" == claim["spec"]["volumeName"]
    assert volume["spec"]["claimRef"]["namespace"] == "pd-space" == claim["metadata"]["namespace"]
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"]
    assert volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == ""
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["nfs"] == {"server": "10.0.0.5", "path": "/export"}
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert not found["PersistentVolume"].retained, "a volume left behind never binds again (tests/cluster)"


def container(job: Registration) -> dict[str, Any]:
    (only,) = job.inputs["spec"]["template"]["spec"]["containers"]
    return only


def test_the_job_may_nothing_but_download() -> None:
    job = made(weights=NFS)["Job"]
    spec = job.inputs["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["automountServiceAccountToken"] is False
    assert container(job)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container(job)["image"] == f"registry.example/benchmark@sha256:{'1' * 64}"
    assert "tolerations" not in spec, "it belongs on CPU nodes"


def test_the_job_runs_on_the_cpu_nodes_and_is_waited_for_before_anything_else() -> None:
    found = made(weights=NFS, cluster={"provider": "doks"})
    spec = found["Job"].inputs["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"doks.digitalocean.com/node-pool": "system"}
    assert "weights" in found["Job"].depends_on
    assert int(found["Job"].create_timeout.removesuffix("s")) == download_seconds(stack(weights=NFS))


def test_private_images_are_pulled_with_the_secret() -> None:
    images = {**{name: f"{name}@sha256:{'1' * 64}" for name in ("engine", "benchmark")}, "pullSecret": "registry"}
    spec = made(weights=NFS, images=images)["Job"].inputs["spec"]["template"]["spec"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_a_failed_job_fails_the_update_soon_and_is_started_again_by_the_next() -> None:
    job = made(weights=NFS)["Job"].inputs
    rules = job["spec"]["podFailurePolicy"]["rules"]
    # Pulumi would wait for hours on a Job that `FailJob` ended (tests/cluster/test_downloaded_weights.py).
    assert {rule["action"] for rule in rules} == {"Ignore"}
    assert job["spec"]["backoffLimit"] <= 2
    assert job["metadata"]["annotations"]["pulumi.com/replaceUnready"] == "true"


@pytest.mark.parametrize(
    ("change", "other_claim"),
    [({"revision": COMMIT[::-1]}, False), ({"size": "2Ti"}, True), ({"nfs": {"server": "s", "path": "/e"}}, True)],
)
def test_what_kubernetes_cannot_change_gets_another_name(change: dict[str, Any], other_claim: bool) -> None:
    before, after = stack(weights=NFS), stack(weights={**NFS, **change})
    assert (claim_name(before) != claim_name(after)) == other_claim
    assert download_name(before) != download_name(after)
    assert re.fullmatch(r"weights-[0-9a-f]{8}", claim_name(before))
    assert re.fullmatch(r"weights-download-[0-9a-f]{8}", download_name(before))


@pytest.mark.parametrize(("model", "gigabytes"), [("qwen3-235b-a22b-fp8", 237), ("deepseek-v3-0324", 689)])
def test_pulumi_waits_long_enough_for_a_slow_download(model: str, gigabytes: int) -> None:
    seconds = download_seconds(stack(model=model, weights=NFS))
    at_one_gigabit = gigabytes * 8
    assert at_one_gigabit < seconds < 3 * 3600


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_benchmark_goes_before_the_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kubernetes keeps a claim that any pod names, a finished benchmark's too: `destroy` would wait, and give up."""
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    chosen = stack(weights=NFS, namespace="pd-space", rayOperator={"install": "preinstalled"})
    seen = program_registers(lambda: deploy_on_kubernetes(chosen))
    template = next(one for one in seen if one.kind == "CronJob")
    assert "weights" in template.depends_on
