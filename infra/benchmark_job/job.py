"""The benchmark's Job: made from the stack's suspended CronJob, one at a time."""

import copy
import json
from collections.abc import Sequence

from benchmarks.errors import BenchmarkError
from infra.benchmark_job.kube_api import Json, KubeApi
from infra.benchmark_job.outputs import Place
from infra.benchmark_job.pod_state import job_finished, newest
from infra.provider.preflight.facts import RAY
from infra.provider.resource import ResourceError
from serving.kubernetes_names import BENCHMARK, BENCHMARK_TARGET, RAY_SERVICE, labels


class Jobs:
    """The benchmark Jobs of one stack."""

    def __init__(self, api: KubeApi, place: Place) -> None:
        self.api = api
        self.place = place
        self._jobs = f"/apis/batch/v1/namespaces/{place.namespace}/jobs"
        self._core = f"/api/v1/namespaces/{place.namespace}"

    def template(self) -> Json:
        """The CronJob, once it and the volume for results are known to be there. Raises BenchmarkError."""
        place = self.place
        cronjob = self.api.get(f"/apis/batch/v1/namespaces/{place.namespace}/cronjobs/{place.cronjob}")
        if cronjob is None:
            raise BenchmarkError(
                f"there is no CronJob {place.cronjob} in namespace {place.namespace}; run `pulumi up` of {place.stack}"
            )
        claim = self.api.get(f"{self._core}/persistentvolumeclaims/{place.results_claim}")
        if claim is None or claim.get("status", {}).get("phase") == "Lost" or "deletionTimestamp" in claim["metadata"]:
            raise BenchmarkError(
                f"the volume claim {place.results_claim} in namespace {place.namespace} is gone or has lost its volume "
                "with all runs on it; run `pulumi refresh` and `pulumi up` to make a new one"
            )
        return cronjob

    def check_service(self) -> None:
        """Whether there is something to measure. Raises BenchmarkError when the last `pulumi up` did not end well."""
        namespace = self.place.namespace
        service = self.api.get(f"/apis/{RAY}/namespaces/{namespace}/rayservices/{RAY_SERVICE}")
        conditions = (service or {}).get("status", {}).get("conditions") or []
        ready: Json = next((condition for condition in conditions if condition["type"] == "Ready"), {})
        if ready.get("status") == "True":
            return
        name = f"RayService {RAY_SERVICE} in namespace {namespace}"
        if service is None:
            raise BenchmarkError(
                f"{name} is not there, so that there is nothing to measure; run `pulumi refresh`, then `pulumi up` of "
                f"{self.place.stack}"
            )
        said = f" ({' '.join(message.split())})" if (message := str(ready.get("message") or "")) else ""
        raise BenchmarkError(
            f"{name} is not ready{said}, so that there is nothing to measure; run `pulumi up` of {self.place.stack}, "
            f"and see `kubectl describe rayservice {RAY_SERVICE} -n {namespace}`"
        )

    def all(self) -> list[Json]:
        """Every Job of this stack that Kubernetes still keeps, the latest first."""
        chosen = labels(self.place.stack, BENCHMARK)
        selector = ",".join(f"{key}={value}" for key, value in chosen.items())
        found = self.api.list(self._jobs, labelSelector=selector)
        return sorted(found, key=_age, reverse=True)

    def active(self) -> Json | None:
        """The one that has not finished."""
        return next((job for job in self.all() if not job_finished(job)), None)

    def deployed_scenario(self) -> str:
        """The scenario of the target that a pod reads. An update that failed may have changed the stack's outputs."""
        found = self.api.get(f"{self._core}/configmaps/{BENCHMARK_TARGET}") or {}
        try:
            return str(json.loads(found["data"]["target.json"])["scenario"])
        except (TypeError, KeyError, ValueError):
            fix = f"run `pulumi up` of {self.place.stack}"
            raise BenchmarkError(f"ConfigMap {BENCHMARK_TARGET} has no target; {fix}") from None

    def start(self, cronjob: Json, arguments: Sequence[str], deadline_s: int) -> Json:
        """Make the next Job. Raises BenchmarkError when another one is active, whoever started it."""
        existing = self.all()
        running = next((job for job in existing if not job_finished(job)), None)
        if running is not None:
            raise self._busy(running["metadata"]["name"])
        name = next_name(self.place.cronjob, [job["metadata"]["name"] for job in existing])
        try:
            return self.api.post(self._jobs, job_from(cronjob, name, arguments, deadline_s))
        except ResourceError:
            # Two who start at the same moment choose the same name, and Kubernetes gives it once.
            if self.read(name) is None:
                raise
            raise self._busy(name) from None

    def read(self, name: str) -> Json | None:
        """One Job as it is now; None when it is gone."""
        return self.api.get(f"{self._jobs}/{name}")

    def remove(self, name: str) -> None:
        """Delete a Job and its pod."""
        self.api.delete(f"{self._jobs}/{name}", propagationPolicy="Background")

    def pod(self, job: Json) -> Json | None:
        """The Job's pod, if there is one."""
        selector = f"batch.kubernetes.io/controller-uid={job['metadata']['uid']}"
        return newest(self.api.list(f"{self._core}/pods", labelSelector=selector))

    def warnings(self, *things: Json | None) -> list[Json]:
        """Events that warn about these objects."""
        found: list[Json] = []
        for thing in filter(None, things):
            selector = f"type=Warning,involvedObject.uid={thing['metadata']['uid']}"
            found += self.api.list(f"{self._core}/events", fieldSelector=selector)
        return found

    def log_path(self, pod: Json) -> str:
        """Where the pod's log is."""
        return f"{self._core}/pods/{pod['metadata']['name']}/log"

    def _busy(self, name: str) -> BenchmarkError:
        return BenchmarkError(
            f"{name} measures {self.place.stack} already; follow it with `make results`, "
            f"or stop it with `kubectl delete job {name} -n {self.place.namespace}`"
        )


def _age(job: Json) -> tuple[str, int, str]:
    """Sorts by time, of which Kubernetes keeps seconds, then by number."""
    name = job["metadata"]["name"]
    return job["metadata"]["creationTimestamp"], len(name), name


def next_name(cronjob: str, names: Sequence[str]) -> str:
    """`benchmark-4` after `benchmark-3`. The CronJob's history limits remove the oldest Jobs, never the latest."""
    numbers = [name.removeprefix(f"{cronjob}-") for name in names if name.startswith(f"{cronjob}-")]
    return f"{cronjob}-{max((int(number) for number in numbers if number.isdecimal()), default=0) + 1}"


def job_from(cronjob: Json, name: str, arguments: Sequence[str], deadline_s: int) -> Json:
    """The Job that `kubectl create job NAME --from=cronjob/…` makes (kubectl 0.34, create_job.go), with more arguments.

    `deadline_s` replaces the template's: other rates take another time.
    """
    metadata, template = cronjob["metadata"], copy.deepcopy(cronjob["spec"]["jobTemplate"])
    spec = template["spec"]
    spec["activeDeadlineSeconds"] = deadline_s
    container = next(c for c in spec["template"]["spec"]["containers"] if c["name"] == BENCHMARK)
    container["args"] = [*container.get("args", []), *arguments]
    annotations = template.get("metadata", {}).get("annotations", {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": template.get("metadata", {}).get("labels", {}),
            "annotations": {**annotations, "cronjob.kubernetes.io/instantiate": "manual"},
            "ownerReferences": [owner(cronjob)],
        },
        "spec": spec,
    }


def owner(cronjob: Json) -> Json:
    """What makes an object go with the CronJob. No blockOwnerDeletion: that takes a right on its finalizers."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": cronjob["metadata"]["name"],
        "uid": cronjob["metadata"]["uid"],
        "controller": True,
    }
