"""Where replicas find their weights, in the words of the Kubernetes API: what an engine pod mounts, what fills it."""

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

from serving.kubernetes_names import HUGGING_FACE_TOKEN, WEIGHTS, labels
from serving.kubernetes_settings import NfsServer
from serving.stack import Stack

MODELS = "/models"
HUB_CACHE = "/var/cache/huggingface"
TOKEN_KEY = "token"  # noqa: S105  the key in the secret
DOWNLOAD = "weights-download"  # the Job, and the container in it
_SLOWEST_GIGABITS = 1.0  # a download slower than this is a fault. DigitalOcean's own script gets 6 Gb/s a node.
_BEFORE_DOWNLOAD_SECONDS = 1800  # image pull, scheduling
_PATIENCE_SECONDS = "900"  # a hub that is away for a quarter of an hour is no reason to start over
# The user of Ray's images. NFS knows numbers only: the export must let this one write.
_USER = 1000


@dataclass(frozen=True)
class PodWeights:
    """What a stack's engine pods get.

    model_source: for Ray Serve LLM, a directory in the pod or the hub's id. engine_arguments: vLLM's.
    """

    model_source: str
    engine_arguments: dict[str, Any] = field(default_factory=dict)
    env: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)


def weights_volume(stack: Stack) -> PodWeights:
    """Volumes, mounts and environment of an engine pod, and the model it loads. Raises ConfigError."""
    mode = stack.weights.mode
    if mode == "dummy":
        # Configuration and tokenizer still come from the hub, with the token for a model behind a licence.
        arguments = {"load_format": "dummy", **_revision(stack)}
        return PodWeights(stack.model_source, arguments, token_variable(stack))
    if mode == "hub":
        cache = {"name": WEIGHTS, "emptyDir": {"sizeLimit": f"{_cache_gibibytes(stack)}Gi"}}
        env = [{"name": "HF_HOME", "value": HUB_CACHE}, *token_variable(stack)]
        mount = {"name": WEIGHTS, "mountPath": HUB_CACHE}
        return PodWeights(stack.model_source, _revision(stack), env, [cache], [mount])
    if mode == "local":
        directory = mount_path = f"{MODELS}/{stack.model_.name}"
        # `Directory`: a node without the weights keeps the pod from starting, in place of an empty folder made there.
        volume: dict[str, Any] = {"hostPath": {"path": stack.weights.path, "type": "Directory"}}
    else:
        directory, mount_path = download_directory(stack), MODELS
        volume = {"persistentVolumeClaim": {"claimName": claim_name(stack), "readOnly": True}}
    return PodWeights(
        directory,
        env=[{"name": "HF_HUB_OFFLINE", "value": "1"}],  # everything is there; nothing may change it
        volumes=[{"name": WEIGHTS, **volume}],
        mounts=[{"name": WEIGHTS, "mountPath": mount_path, "readOnly": True}],
    )


def tokenizer_source(stack: Stack) -> str:
    """Where the benchmark finds the tokenizer: a hub id, or a directory that weights_volume() mounts into its pod.

    With `local` the files are where the engines are, and the benchmark is on a CPU node: it asks the hub if it can.
    """
    if stack.weights.mode == "local" and stack.is_on_hub:
        return stack.model_source
    return weights_volume(stack).model_source


def download_directory(stack: Stack) -> str:
    """One directory for each commit: no download touches files under a running engine, and stacks can share them."""
    return f"{MODELS}/{stack.model_source.replace('/', '--')}/{stack.weights.revision}"


def claim_name(stack: Stack) -> str:
    """Another export or size is another claim: Kubernetes changes neither, and keeps a claim that a pod still uses.

    Under one name the old claim would have to go first, and would wait for engines that wait for the new one.
    """
    nfs = _nfs(stack)
    return f"{WEIGHTS}-{_short_hash(nfs.server, nfs.path, stack.weights.size)}"


def volume_spec(stack: Stack, namespace: str) -> dict[str, Any]:
    """A PersistentVolume on the export, for the claim of this namespace and no other."""
    nfs = _nfs(stack)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim_name(stack)}
    return {
        "capacity": {"storage": stack.weights.size},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",  # no class: no provisioner takes it, and the cluster's default class does not apply
        "claimRef": claim,
        # 16 connections and reads of 1 MiB: DigitalOcean's own options for NFS on DOKS (DO-Solutions/slinky-on-doks).
        "mountOptions": ["vers=4.1", "nconnect=16", "rsize=1048576", "wsize=1048576"],
        "nfs": {"server": nfs.server, "path": nfs.path},
    }


def claim_spec(stack: Stack) -> dict[str, Any]:
    """The claim's spec, without the volume's name."""
    return {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "resources": {"requests": {"storage": stack.weights.size}},
    }


def download_name(stack: Stack) -> str:
    """The Job's name. A Job's template cannot be changed, so another commit or claim is another Job."""
    return f"{DOWNLOAD}-{_short_hash(stack.model_source, stack.weights.revision, claim_name(stack))}"


def download_seconds(stack: Stack) -> int:
    """How long the download may take before `pulumi up` stops waiting for it; the next one finds it further on."""
    return math.ceil(_BEFORE_DOWNLOAD_SECONDS + stack.model_.gigabytes * 8 / _SLOWEST_GIGABITS)


def download_spec(stack: Stack, stack_name: str) -> dict[str, Any]:
    """The spec of the Job that fills the export once.

    It runs in the benchmark's image: that has huggingface_hub and this package, and its nodes are the CPU nodes, which
    would pull the engine's 20 GB for nothing.
    """
    images = stack.required_images
    command = ["python", "-m", "serving.weights_download"]
    container = {
        "name": DOWNLOAD,
        "image": images.benchmark,
        "command": command,
        "args": [
            *(stack.model_source, "--revision", stack.weights.revision),
            *("--directory", download_directory(stack), "--patience", _PATIENCE_SECONDS),
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",  # so that Pulumi shows why
        "env": [
            {"name": "HOME", "value": "/tmp"},  # noqa: S108  the pod's own
            {"name": "HF_HUB_DISABLE_PROGRESS_BARS", "value": "1"},  # a log, not a terminal
            {"name": "HF_XET_CHUNK_CACHE_SIZE_BYTES", "value": "0"},  # no file is fetched twice
            *token_variable(stack),
        ],
        # Guesses with room, not measured: huggingface_hub fetches 8 files at once, and what it has written and NFS has
        # not yet taken counts as the pod's memory.
        "resources": {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "8Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": WEIGHTS, "mountPath": MODELS},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        ],
    }
    pod = {
        "restartPolicy": "Never",  # a new pod for each try: the log of the one that failed stays
        "automountServiceAccountToken": False,
        "nodeSelector": stack.profile.system_node_selector,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": WEIGHTS, "persistentVolumeClaim": {"claimName": claim_name(stack)}},
            {"name": "tmp", "emptyDir": {}},
        ],
        **images.pull_secrets,
    }
    return {
        # A few pods, for a node that dies: what passes is the program's own affair, and what does not should fail
        # `pulumi up` soon. A drained node does not count. No `FailJob` rule for an exit code: Pulumi would wait on, it
        # knows a failed Job by BackoffLimitExceeded or DeadlineExceeded only (cloud-ready-checks 1.3).
        "backoffLimit": 2,
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },
        "template": {"metadata": {"labels": labels(stack_name, "weights")}, "spec": pod},
    }


def _nfs(stack: Stack) -> NfsServer:
    assert stack.weights.nfs is not None  # noqa: S101  settings: with mode nfs
    return stack.weights.nfs


def _short_hash(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:8]


def token_variable(stack: Stack) -> list[dict[str, Any]]:
    """The hub's token as a container's variable, from the stack's Secret; nothing without one."""
    if stack.hugging_face_token is None:
        return []
    return [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": HUGGING_FACE_TOKEN, "key": TOKEN_KEY}}}]


def _revision(stack: Stack) -> dict[str, Any]:
    return {"revision": stack.weights.revision} if stack.weights.revision else {}


def _cache_gibibytes(stack: Stack) -> int:
    """A tenth more than the weights, for the cache's own files. A pod that outgrows its limit is evicted."""
    return math.ceil(stack.model_.gigabytes * 1.1e9 / 2**30)
