"""A pod that lives for a few minutes and does nothing: through it the results volume is read."""

import contextlib
import copy
import signal
import time
from collections.abc import Iterator

from benchmarks.errors import BenchmarkError
from benchmarks.process import ENDINGS
from infra.benchmark_job.job import Jobs, owner
from infra.benchmark_job.kube_api import PROBLEMS, Json
from infra.benchmark_job.pod_state import Running, Waiting, pod_state
from infra.benchmark_job.view import View
from infra.provider.kubernetes_api import Unavailable
from serving.kubernetes_names import BENCHMARK, RESULTS, labels

READER = "reader"
# Seconds. _LIFE: the bound for a pod that nobody removes, because this program was killed; a copy takes minutes.
# _TO_START: the volume may still hang on a node that is gone; Kubernetes takes it from there after 6 minutes (1.34,
# attach_detach_controller.go, ReconcilerMaxWaitForUnmountDuration), and then the pod has to be made.
# _STUCK: the kubelet has tried three times to pull the image (it waits 10 s and 20 s; 1.34, kubelet.go).
_LIFE = 3600
_TO_START = 600
_STUCK = 60
_POLL = 1.0


@contextlib.contextmanager
def reader_pod(jobs: Jobs, cronjob: Json, view: View) -> Iterator[str]:
    """A running reader pod's name. It is removed when the block ends, whatever ends it. Raises BenchmarkError."""
    namespace = jobs.place.namespace
    pods = f"/api/v1/namespaces/{namespace}/pods"
    _remove_dead(jobs, pods)
    pod = jobs.api.post(pods, manifest(cronjob, jobs.place.stack, jobs.place.results_claim))
    name = str(pod["metadata"]["name"])
    try:
        _wait(jobs, pods, name, view)
        yield name
    finally:
        # An impatient second Ctrl-C waits for one request.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
        try:
            jobs.api.delete(f"{pods}/{name}", gracePeriodSeconds=0)
        except PROBLEMS as error:
            view.note(f"could not remove pod {name} ({error}); it ends by itself within {_LIFE // 60} min")
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def manifest(cronjob: Json, stack: str, claim: str) -> Json:
    """The benchmark's own pod with another command and without what only a measurement needs."""
    spec = copy.deepcopy(cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"])
    container, mount = _benchmark_container(spec)
    reader = {
        "name": READER,
        "image": container["image"],
        "command": ["sleep", str(_LIFE)],
        "securityContext": container.get("securityContext", {}),
        "volumeMounts": [{**mount, "readOnly": True}],
        # tar and gzip use a core while they copy; a system node has that to spare. They need a few megabytes, and the
        # files that they read count as the container's too, until the kernel takes them back.
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
    }
    if "imagePullPolicy" in container:
        reader["imagePullPolicy"] = container["imagePullPolicy"]
    # fsGroup stays: without it the files belong to a group that this pod is not in.
    spec |= {
        "containers": [reader],
        "volumes": [{"name": RESULTS, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}],
        "activeDeadlineSeconds": _LIFE,
    }
    metadata = {
        "generateName": f"{RESULTS}-{READER}-",
        "namespace": cronjob["metadata"]["namespace"],
        "labels": labels(stack, RESULTS),
        # Removed with the stack, should nobody else have done it.
        "ownerReferences": [owner(cronjob)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def results_folder(cronjob: Json) -> str:
    """Where the pods see the results volume."""
    _, mount = _benchmark_container(cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"])
    return str(mount["mountPath"])


def _benchmark_container(pod_spec: Json) -> tuple[Json, Json]:
    container = next(c for c in pod_spec["containers"] if c["name"] == BENCHMARK)
    return container, next(mount for mount in container["volumeMounts"] if mount["name"] == RESULTS)


def _remove_dead(jobs: Jobs, pods: str) -> None:
    """Pods of earlier copies that were killed before they could clean up. A living one is somebody else's."""
    chosen = ",".join(f"{key}={value}" for key, value in labels(jobs.place.stack, RESULTS).items())
    for pod in jobs.api.list(pods, labelSelector=chosen):
        if pod.get("status", {}).get("phase") in ("Failed", "Succeeded"):
            jobs.api.delete(f"{pods}/{pod['metadata']['name']}")


def _wait(jobs: Jobs, pods: str, name: str, view: View) -> None:
    began, stuck_since = time.monotonic(), None
    while True:
        now = time.monotonic()
        try:
            pod = jobs.api.get(f"{pods}/{name}")
            if pod is None:
                raise BenchmarkError(f"pod {name}, through which results are read, was deleted")
            state = pod_state(pod, READER)
            if isinstance(state, Waiting):
                state = pod_state(pod, READER, jobs.warnings(pod))
        except Unavailable as error:
            state = Waiting(str(error))
        if isinstance(state, Running):
            return
        reason = state.reason if isinstance(state, Waiting) else f"it ended: {state.reason}"
        stuck_since = (stuck_since or now) if isinstance(state, Waiting) and state.stuck else None
        given_up = now - began >= _TO_START or (stuck_since is not None and now - stuck_since >= _STUCK)
        if given_up or not isinstance(state, Waiting):
            raise BenchmarkError(f"pod {name}, through which results are read, does not run: {reason}")
        view.wait(f"reading the results volume: {reason}", now - began)
        time.sleep(_POLL)
