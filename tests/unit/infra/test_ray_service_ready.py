"""When a RayService counts as serving, and what is told while it does not. The API is played by a dictionary."""

import base64
from typing import Any

import pytest

from infra.provider.kubernetes_api import KubernetesApi, Unavailable
from infra.provider.pod_reasons import not_ready, summary
from infra.provider.ray_service_ready import look
from infra.provider.resource import ResourceError

SERVICE = "/apis/ray.io/v1/namespaces/ns/rayservices/llm"
CLUSTER = "/apis/ray.io/v1/namespaces/ns/rayclusters/llm-abcde"
APPLICATION = {"name": "llm", "deployments": [{"name": "Decode:m", "num_replicas": 1}]}
INPUTS = {"namespace": "ns", "name": "llm", "application": APPLICATION, "pods": 2, "generation": 2}


class Api(KubernetesApi):
    """Objects by path; `serve` is what Ray's dashboard answers, or raises."""

    def __init__(self, objects: dict[str, Any], pods: list[dict[str, Any]], serve: Any = None) -> None:
        self.objects, self.pods, self.serve, self.headers = objects, pods, serve, {}

    def get(self, path: str, **query: Any) -> Any:
        return self.objects.get(path)

    def list(self, path: str, **query: Any) -> list[dict[str, Any]]:
        return self.pods

    def proxy_get(self, namespace: str, service: str, port: int, path: str, headers: Any = None, **_: Any) -> Any:
        self.headers = headers
        if isinstance(self.serve, Exception):
            raise self.serve
        return {"applications": {"llm": self.serve} if self.serve else {}}


def pod(name: str, kind: str = "worker", ready: bool = True, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}, *status.pop("conditions", [])]
    return {
        "metadata": {"name": name, "labels": {"ray.io/node-type": kind}},
        "status": {"phase": "Running", "conditions": conditions, **status},
    }


def service(ready: str = "True", reason: str = "", generation: int = 2, **status: Any) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": "because of that"}
    given = {"conditions": [condition], "activeServiceStatus": {"rayClusterName": "llm-abcde"}, **status}
    return {"metadata": {"generation": generation}, "status": given}


def details(status: str, config: Any = APPLICATION, replicas: int = 1, message: str = "") -> dict[str, Any]:
    deployment = {
        "status": "HEALTHY" if status == "RUNNING" else "UPDATING",
        "message": message,
        "target_num_replicas": 1,
        "replicas": [{"state": "RUNNING"}] * replicas,
    }
    return {
        "status": status,
        "message": "",
        "deployed_app_config": config,
        "deployments": {"Decode:m": deployment},
    }


def api(serve: Any = None, the_service: Any = None, pods: Any = None, cluster: Any = None) -> Api:
    secret = {"data": {"auth_token": base64.b64encode(b"ray's token").decode()}}
    objects = {
        SERVICE: the_service or service(),
        CLUSTER: cluster or {"status": {}},
        "/api/v1/namespaces/ns/secrets/llm-abcde": secret,
    }
    return Api(objects, pods if pods is not None else [pod("head", "head"), pod("worker")], serve)


def test_it_serves_when_serve_runs_this_config_and_kuberay_says_ready() -> None:
    kubernetes = api(details("RUNNING"))
    assert look(kubernetes, INPUTS).serves
    assert kubernetes.headers == {"x-ray-authorization": "Bearer ray's token"}


@pytest.mark.parametrize(
    ("kubernetes", "words"),
    [
        (api(details("RUNNING", {"name": "llm"})), "replicas Decode:m 1/1"),  # still the config before
        (api(details("DEPLOYING", replicas=0)), "replicas Decode:m 0/1"),
        (api(details("DEPLOY_FAILED", {"name": "llm"})), "replicas"),  # the failure of the config before
        (api(details("RUNNING"), service("False")), "proxies to be reachable"),
        (api(details("RUNNING"), service(generation=1)), "proxies to be reachable"),
        (api(None), "KubeRay to submit the application"),
        (api(Unavailable("refused")), "the Ray dashboard to answer"),
        (api(pods=[]), "the Ray head; no pod yet"),
        (api(the_service={"metadata": {"generation": 2}, "status": {"conditions": []}}), "make a Ray cluster"),
    ],
)
def test_it_waits(kubernetes: Api, words: str) -> None:
    seen = look(kubernetes, INPUTS)
    assert not seen.serves
    assert words in seen.waiting
    assert seen.taken_up


def test_a_pod_that_finds_no_node_is_told_with_the_schedulers_words() -> None:
    pending = pod(
        "head", "head", False, conditions=[{"type": "PodScheduled", "status": "False", "message": "0/4 nodes fit"}]
    )
    seen = look(api(pods=[pending]), INPUTS)
    assert seen.waiting == "the Ray head; head: not scheduled: 0/4 nodes fit"


def test_pods_that_may_not_be_made_are_told() -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "message": "exceeded\nquota"}
    seen = look(api(pods=[], cluster={"status": {"conditions": [refused]}}), INPUTS)
    assert "exceeded quota" in seen.waiting


def refused(message: str) -> dict[str, Any]:
    """A RayCluster as KubeRay 1.6 marks it: two errors, joined with a line break, with a new pod name each time."""
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod", "message": message}
    return {"status": {"conditions": [condition]}}


INVALID = (
    'FailedCreateWorkerPod\nPod "llm-abcde-engines-worker-{}" is invalid: spec.containers[0].resources.requests: '
    'Invalid value: "132": must be less than or equal to cpu limit of 4'
)
FORBIDDEN = (
    'FailedCreateHeadPod\npods "llm-abcde-head-{}" is forbidden: violates PodSecurity "baseline:latest": '
    "host namespaces (hostNetwork=true)"
)
QUOTA = 'FailedCreateWorkerPod\npods "llm-abcde-engines-worker-{}" is forbidden: exceeded quota: pods=0'


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (INVALID, "FailedCreateWorkerPod: pod is invalid: spec.containers[0].resources.requests: Invalid value: "),
        (FORBIDDEN, 'FailedCreateHeadPod: pod is forbidden: violates PodSecurity "baseline:latest": host namespaces'),
    ],
)
def test_a_pod_that_the_api_refuses_for_good_ends_it(message: str, words: str) -> None:
    lines: set[str] = set()
    for attempt in ("k2xzm", "9p4qd"):
        with pytest.raises(ResourceError) as caught:
            look(api(pods=[], cluster=refused(message.format(attempt))), INPUTS)
        lines.add(str(caught.value))
    [line] = lines
    assert f"KubeRay cannot make the pods of RayService ns/llm: {words}" in line
    assert "\n" not in line


def test_a_refusal_that_may_pass_is_waited_for_and_told_once() -> None:
    told = {look(api(pods=[], cluster=refused(QUOTA.format(pod))), INPUTS).waiting for pod in ("k2xzm", "9p4qd")}
    assert told == {"the Ray head; FailedCreateWorkerPod: pod is forbidden: exceeded quota: pods=0"}


@pytest.mark.parametrize(("level", "ends"), [("baseline", True), ("privileged", False), ("", True)])
def test_a_level_that_was_mended_since_is_waited_for(level: str, ends: bool) -> None:
    """KubeRay's condition stays until it tries again, which may be minutes later."""
    kubernetes = api(pods=[], cluster=refused(FORBIDDEN.format("x")))
    labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
    kubernetes.objects["/api/v1/namespaces/ns"] = {"metadata": {"labels": labels}}
    if not ends:
        assert "PodSecurity" in look(kubernetes, INPUTS).waiting
        return
    with pytest.raises(ResourceError, match="PodSecurity"):
        look(kubernetes, INPUTS)


def test_without_a_status_nobody_has_taken_it_up() -> None:
    assert not look(api(the_service={"metadata": {"generation": 1}}), INPUTS).taken_up


@pytest.mark.parametrize(
    ("kubernetes", "words"),
    [
        (api(details("DEPLOY_FAILED", message="ValueError: no such argument")), "DEPLOY_FAILED.*ValueError: no such"),
        (api(the_service=service("False", "ValidationFailed")), "KubeRay refuses.*because of that"),
        (Api({}, []), "deleted by somebody"),
    ],
)
def test_what_waiting_cannot_mend_ends_it(kubernetes: Api, words: str) -> None:
    with pytest.raises(ResourceError, match=words):
        look(kubernetes, INPUTS)


def waiting(reason: str, message: str = "", **last: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return pod("p", ready=False, containerStatuses=[{"name": "ray-worker", "state": state, "lastState": last}])


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (waiting("ImagePullBackOff", "Back-off pulling image"), "ray-worker ImagePullBackOff: Back-off pulling image"),
        (
            waiting("CrashLoopBackOff", "back-off", terminated={"exitCode": 137, "reason": "OOMKilled"}),
            "ray-worker CrashLoopBackOff, last exit code 137 (OOMKilled): back-off",
        ),
        (waiting("ContainerCreating"), "running, not ready yet"),
        (pod("p", ready=False, phase="Failed", reason="Evicted"), "failed: Evicted"),
        (pod("p", ready=False, phase="Pending"), "starting"),
    ],
)
def test_the_reason_of_one_pod(found: dict[str, Any], reason: str) -> None:
    assert not_ready([found]) == {"p": reason}


def test_pods_with_one_reason_are_told_once() -> None:
    assert summary({"a": "x", "b": "x", "c": "y"}) == "2 pods (a, ...): x; c: y"
    assert summary({str(n): str(n) for n in range(5)}).endswith("2 more reasons")
    leaving = pod("going", ready=False)
    leaving["metadata"]["deletionTimestamp"] = "now"
    assert not_ready([leaving, pod("ready")]) == {}
