"""Objects of Pulumi's state that are gone: what preview, update, refresh and destroy make of them."""

from threading import Event
from typing import Any

import pytest
import yaml
from stand_in_api_server import Kubeconfig

from infra.provider import ray_service_ready
from infra.provider.kubernetes_api import Forbidden, Unavailable
from infra.provider.ray_service_ready import RayServiceReady, Seen
from infra.provider.resource import Operation, PartlyUpdated, ResourceError

HOME, SERVICE = "/api/v1/namespaces/ns", "/apis/ray.io/v1/namespaces/ns/rayservices/llm"
METRICS, TARGET = f"{HOME}/services/llm-metrics", f"{HOME}/configmaps/benchmark-target"
OBJECTS = {
    "Namespace ns": HOME,
    "RayService llm": SERVICE,
    "Service llm-metrics": METRICS,
    "ConfigMap benchmark-target": TARGET,
}
INPUTS: dict[str, Any] = {
    "kubeconfig": "/kubeconfig",
    "context": "",
    "namespace": "ns",
    "name": "llm",
    "uid": "1",
    "generation": 1,
    "application": {},
    "pods": 2,
    "readyTimeoutSeconds": 60,
    "objects": OBJECTS,
}
REMEDY = "run `pulumi refresh`, then `pulumi up`"
TARGET_GONE = f"ConfigMap benchmark-target is gone from namespace ns, though Pulumi's state has it; {REMEDY}"


class Cluster:
    """What is at which path: an object, None or a failure. A RayService that is looked at serves."""

    def __init__(self) -> None:
        self.at: dict[str, Any] = {path: {"metadata": {}} for path in OBJECTS.values()}

    def __call__(self, kubeconfig: str, context: str) -> "Cluster":
        return self

    def get(self, path: str) -> Any:
        answer = self.at.get(path)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    there = Cluster()
    monkeypatch.setattr(ray_service_ready, "KubernetesApi", there)
    monkeypatch.setattr(ray_service_ready, "look", lambda api, inputs: Seen(serves=True))
    monkeypatch.setattr(ray_service_ready, "_POLL_SECONDS", 0.01)
    return there


def operation() -> Operation:
    return Operation(lambda text, lasting: None, Event())


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, []),
        ({TARGET: None}, [TARGET_GONE]),
        (
            {TARGET: None, METRICS: None},
            [
                "Service llm-metrics, ConfigMap benchmark-target are gone from namespace ns, though Pulumi's state has "
                f"them; {REMEDY}"
            ],
        ),
        (dict.fromkeys(OBJECTS.values()), [f"Namespace ns is gone, though Pulumi's state has it; {REMEDY}"]),
        (
            {SERVICE: {"metadata": {"deletionTimestamp": "now"}}},
            [
                "RayService llm is being deleted in namespace ns, though Pulumi's state has it; wait until that is "
                "done, then run `pulumi refresh` and `pulumi up`"
            ],
        ),
        ({TARGET: Forbidden("no")}, []),
        ({TARGET: Unavailable("away")}, ["away"]),
    ],
)
def test_a_preview_says_what_is_gone(cluster: Cluster, changes: dict[str, Any], lines: list[str]) -> None:
    cluster.at |= changes
    assert RayServiceReady().check(INPUTS, INPUTS) == lines


def test_what_this_update_is_going_to_make_is_not_missing(cluster: Cluster) -> None:
    del cluster.at[TARGET]
    resource = RayServiceReady()
    before = {**INPUTS, "objects": {name: path for name, path in OBJECTS.items() if path != TARGET}}
    assert resource.check({}, INPUTS) == []
    assert resource.check(before, INPUTS) == []
    assert resource.check({**INPUTS, "objects": None}, INPUTS) == [], "made by an earlier version"
    other_namespace = {**OBJECTS, "ConfigMap benchmark-target": "/elsewhere"}
    assert resource.check({**INPUTS, "objects": other_namespace}, INPUTS) == []
    assert resource.check(INPUTS, before) == [], "no longer wanted"
    assert resource.check({**INPUTS, "context": "another"}, INPUTS) == [], "made again in another cluster"


def test_an_update_does_not_end_well_without_them(cluster: Cluster) -> None:
    resource = RayServiceReady()
    assert resource.create(INPUTS, operation())[0] == "ns/llm"
    cluster.at[TARGET] = None
    with pytest.raises(ResourceError) as caught:
        resource.create(INPUTS, operation())
    assert str(caught.value) == TARGET_GONE
    with pytest.raises(PartlyUpdated, match="is gone from namespace ns"):
        resource.update("ns/llm", INPUTS, INPUTS, operation())


def test_what_goes_while_the_service_starts_is_seen_at_the_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(api: Any, inputs: Any) -> Seen:
        cluster.at[TARGET] = None
        return Seen(serves=True)

    monkeypatch.setattr(ray_service_ready, "look", look)
    with pytest.raises(ResourceError, match="ConfigMap benchmark-target is gone"):
        RayServiceReady().create(INPUTS, operation())


def test_a_refresh_makes_the_next_update_possible(cluster: Cluster) -> None:
    resource = RayServiceReady()
    assert resource.read("ns/llm", INPUTS) == (INPUTS, INPUTS)
    cluster.at[TARGET] = None
    found = resource.read("ns/llm", INPUTS)
    assert found
    assert found[0] == found[1]
    assert "ConfigMap benchmark-target" not in found[0]["objects"]
    assert resource.check(found[0], INPUTS) == []
    assert resource.changed(found[0], INPUTS), "so that the update looks again, and records all of them"
    cluster.at[SERVICE] = None
    assert resource.read("ns/llm", INPUTS) is None
    cluster.at[SERVICE] = Unavailable("away")
    assert resource.read("ns/llm", INPUTS) == (INPUTS, INPUTS)


def test_the_way_in_is_kept_as_the_last_update_had_it() -> None:
    """`delete` is given what was recorded: with the path of before, it would refuse a file that is there."""
    assert RayServiceReady().changed(INPUTS, {**INPUTS, "kubeconfig": "/new"})
    assert not RayServiceReady().changed(INPUTS, {**INPUTS, "readyTimeoutSeconds": 1})


def test_a_destroy_without_the_kubeconfig(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, kubeconfig: Kubeconfig
) -> None:
    monkeypatch.delenv("PULUMI_K8S_DELETE_UNREACHABLE", raising=False)
    file = tmp_path / "config"
    with pytest.raises(ResourceError) as caught:
        RayServiceReady().delete("ns/llm", {**INPUTS, "kubeconfig": str(file)}, operation())
    assert str(caught.value) == (
        f"kubeconfig {file} does not exist, and the last `pulumi up` recorded it; put it back, or run `pulumi up` with "
        "another one (cluster.kubeconfig) first"
    )
    file.write_text(yaml.safe_dump(kubeconfig()))
    for context in ("here", ""):
        RayServiceReady().delete("ns/llm", {**INPUTS, "kubeconfig": str(file), "context": context}, operation())
    RayServiceReady().delete("ns/llm", {**INPUTS, "kubeconfig": "content: of a file\n"}, operation())
    # A cluster that is gone for good: docs/howto/existing-cluster.md.
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    RayServiceReady().delete("ns/llm", {**INPUTS, "kubeconfig": "/gone"}, operation())


@pytest.mark.parametrize(
    ("context", "change", "words"),
    [
        (
            "before",
            {},
            "context 'before' is not in kubeconfig {file}, and the last `pulumi up` recorded it; put it back: `kubectl "
            "--kubeconfig {file} config rename-context NAME before` if it was renamed (there are: here)",
        ),
        ("before", {"contexts": None}, "(there are: none)"),
        ("here", {"clusters": []}, "context 'here' of kubeconfig {file} has no cluster with a `server` URL; get a new"),
        ("", {"current-context": None}, "kubeconfig {file} has no current context; set cluster.context to one of: her"),
    ],
)
def test_a_destroy_without_the_context(
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    kubeconfig: Kubeconfig,
    context: str,
    change: dict[str, Any],
    words: str,
) -> None:
    monkeypatch.delenv("PULUMI_K8S_DELETE_UNREACHABLE", raising=False)
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(kubeconfig() | change))
    recorded = {**INPUTS, "kubeconfig": str(file), "context": context}
    with pytest.raises(ResourceError) as caught:
        RayServiceReady().delete("ns/llm", recorded, operation())
    assert words.format(file=file) in str(caught.value)
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    RayServiceReady().delete("ns/llm", recorded, operation())
