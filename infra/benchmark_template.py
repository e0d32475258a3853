"""What `make benchmark` finds in the cluster: the target, a volume for results, a CronJob that never runs by itself.

A suspended CronJob is a template that Kubernetes keeps: a Job made from it needs nothing of this checkout.
"""

from typing import Any

import pulumi

from benchmarks.scenario_files import find_scenario
from infra.benchmark_job.deadline import deadline_seconds
from infra.drift import healed_by_force
from infra.late import Late
from serving.kubernetes_names import BENCHMARK, BENCHMARK_FOLDERS, BENCHMARK_TARGET, RESULTS, labels
from serving.stack import Stack
from serving.weights import token_variable, weights_volume

Manifest = dict[str, Any]
TARGET_FOLDER, RESULTS_FOLDER, HOME, SCRATCH = BENCHMARK_FOLDERS
TARGET_FILE = "target.json"
# Any number but 0 does: nothing in the image is owned by it, and the volumes are the group's.
_USER = 1000
_NEVER = "0 0 31 2 *"  # 31 February, should somebody resume it
# Finished Jobs whose logs Kubernetes keeps; its own defaults are 3 that succeeded and 1 that failed.
_KEPT_JOBS = 5


def benchmark_template(
    stack: Stack, stack_name: str, target: dict[str, Any], late: Late, opts: pulumi.ResourceOptions, namespace: str
) -> tuple[dict[str, Any], pulumi.Resource]:
    """Register all of it. `target`: infra/benchmark_target.py.

    Returns the stack output `benchmark_job`, and the resource that depends on the others.
    """
    from pulumi_kubernetes.batch.v1 import CronJob
    from pulumi_kubernetes.core.v1 import ConfigMap, PersistentVolumeClaim

    def named(name: str, component: str, **annotations: str) -> Any:
        metadata: Manifest = {"name": name, "namespace": namespace, "labels": labels(stack_name, component)}
        return metadata | ({"annotations": annotations} if annotations else {})

    configuration = ConfigMap(
        BENCHMARK_TARGET,
        metadata=named(BENCHMARK_TARGET, BENCHMARK),
        data={TARGET_FILE: pulumi.Output.json_dumps(target)},
        opts=opts,
    )
    claim = PersistentVolumeClaim(
        RESULTS,
        # Not awaited: a class that waits for its first consumer binds when the first benchmark runs, not before.
        # By force, as it remembers the field manager of the stack's earlier life: another size would be a conflict.
        metadata=healed_by_force(named(RESULTS, RESULTS, **{"pulumi.com/skipAwait": "true"})),  # pyright: ignore[reportArgumentType]
        spec=claim_spec(stack),  # pyright: ignore[reportArgumentType]
        # Runs outlive the stack that they measured.
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True)),
    )
    # A claim is not deleted while a pod names it, not even a finished one. So other weights mean another CronJob: its
    # Jobs and their pods go with it, and their runs stay in the results.
    with_its_jobs = pulumi.ResourceOptions(
        depends_on=[configuration, claim],
        replace_on_changes=["spec.jobTemplate.spec.template.spec.volumes"],
        delete_before_replace=True,
    )
    template = CronJob(
        BENCHMARK,
        metadata=named(BENCHMARK, BENCHMARK),
        spec=late.of(stack, lambda whole: cron_job_spec(whole, stack_name, str(target["tokenizer"]))),  # pyright: ignore[reportArgumentType]
        opts=pulumi.ResourceOptions.merge(opts, with_its_jobs),
    )
    job = {
        "namespace": namespace,
        "cronjob": BENCHMARK,
        "results_claim": RESULTS,
        "image": late.of(stack, lambda whole: whole.required_images.benchmark),
        "stack": stack_name,
        "scenario": stack.scenario,
    }
    return job, template


def claim_spec(stack: Stack) -> Manifest:
    """Spec of the volume claim for results."""
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],  # all that block storage offers; one pod writes
        "resources": {"requests": {"storage": stack.results.size}},
    }
    if stack.profile.storage_class:
        spec["storageClassName"] = stack.profile.storage_class
    return spec


def cron_job_spec(stack: Stack, stack_name: str, tokenizer: str) -> Manifest:
    """Spec of the CronJob. `tokenizer`: as in the target, a Hugging Face id or a directory."""
    label = labels(stack_name, BENCHMARK)
    pod = {
        # A run of hours is not moved to another node to save one.
        "metadata": {"labels": label, "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
        "spec": _pod_spec(stack, tokenizer),
    }
    job = {
        "backoffLimit": 0,  # a second attempt would be another measurement: RESUME=1, when somebody has looked
        "activeDeadlineSeconds": deadline_seconds(find_scenario(stack.scenario)),
        "template": pod,
    }
    return {
        "suspend": True,
        "schedule": _NEVER,
        "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": _KEPT_JOBS,
        "failedJobsHistoryLimit": _KEPT_JOBS,
        "jobTemplate": {"metadata": {"labels": label}, "spec": job},
    }


def _pod_spec(stack: Stack, tokenizer: str) -> Manifest:
    """A pod on a CPU node, which may do nothing but measure and write to its volume."""
    images = stack.required_images
    volumes, mounts = _tokenizer_volumes(stack, tokenizer)
    container = {
        "name": BENCHMARK,
        "image": images.benchmark,
        "command": ["python", "-m", "benchmarks"],
        "args": ["run", f"{TARGET_FOLDER}/{TARGET_FILE}", "--results", RESULTS_FOLDER],
        "env": [{"name": "HOME", "value": HOME}, {"name": "TMPDIR", "value": SCRATCH}, *token_variable(stack)],
        "resources": _resources(stack),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "target", "mountPath": TARGET_FOLDER, "readOnly": True},
            {"name": RESULTS, "mountPath": RESULTS_FOLDER},
            {"name": "home", "mountPath": HOME},
            {"name": "scratch", "mountPath": SCRATCH},
            *mounts,
        ],
    }
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,  # it speaks to the service, not to Kubernetes
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,  # a new volume belongs to root
            "fsGroupChangePolicy": "OnRootMismatch",  # once, not every file at every start
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "target", "configMap": {"name": BENCHMARK_TARGET}},
            {"name": RESULTS, "persistentVolumeClaim": {"claimName": RESULTS}},
            {"name": "home", "emptyDir": {}},
            {"name": "scratch", "emptyDir": {}},
            *volumes,
        ],
        **images.pull_secrets,
    }
    if stack.profile.system_node_selector:
        spec["nodeSelector"] = dict(stack.profile.system_node_selector)
    return spec


def _resources(stack: Stack) -> Manifest:
    """No CPU limit: a throttled client sends late, and what it measures then is the limit.

    AIPerf starts a process for every second core of the node, 8 at most (benchmarks/load.py). 4 of the 8 cores of a
    system node are left beside a Ray head that takes 4; a node without GPUs is a rehearsal's, and small. Its prompts
    and records are a few hundred megabytes in each of several processes.
    """
    cores = "4" if stack.profile.gpus_per_node else "1"
    return {"requests": {"cpu": cores, "memory": "2Gi"}, "limits": {"memory": "8Gi"}}


def _tokenizer_volumes(stack: Stack, tokenizer: str) -> tuple[list[Manifest], list[Manifest]]:
    """Volumes and mounts through which a tokenizer's directory is there; none for one that comes from the hub."""
    if not tokenizer.startswith("/"):
        return [], []
    weights = weights_volume(stack)
    if any(tokenizer.startswith(mount["mountPath"]) for mount in weights.mounts):
        return weights.volumes, weights.mounts
    # `Directory`: a node without it keeps the pod from starting, in place of an empty folder made there.
    volume = {"name": "tokenizer", "hostPath": {"path": tokenizer, "type": "Directory"}}
    return [volume], [{"name": "tokenizer", "mountPath": tokenizer, "readOnly": True}]
