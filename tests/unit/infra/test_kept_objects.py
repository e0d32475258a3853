"""What is said at the end of `pulumi destroy` about what it leaves, and what the program registers for that."""

from threading import Event
from typing import Any

import pulumi
import pytest
from registrations import is_secret, registered, stack

from infra.cluster.access import KubernetesAccess
from infra.cluster_preflight import ClusterPreflight
from infra.kept_objects import KeptObjects as Registered
from infra.provider import kept_objects
from infra.provider.kept_objects import KeptObjects
from infra.provider.resource import Operation, ResourceError

Json = dict[str, Any]
CLAIM = {
    "kind": "PersistentVolumeClaim",
    "name": "results",
    "apiPath": "/api/v1/namespaces/space/persistentvolumeclaims/results",
    "note": "the benchmark runs",
}
NAMESPACE = {"kind": "Namespace", "name": "space", "apiPath": "/api/v1/namespaces/space", "note": "all of it"}
CRDS = [
    {"kind": "CustomResourceDefinition", "name": f"{name}.ray.io", "apiPath": f"/crds/{name}", "note": "every one"}
    for name in ("rayjobs", "rayservices")
]
OUTPUTS: Json = {
    "kubeconfig": "/home/me/my config",
    "context": "",
    "namespace": "space",
    "kept": [CLAIM, NAMESPACE, *CRDS],
    "hint": "Hint.",
    "clusterGoes": False,
}


def message(monkeypatch: pytest.MonkeyPatch, there: dict[str, Json] | None, **changes: Any) -> str:
    """What a destroy says when these objects are there (path -> object); None: the API is not."""

    class Api:
        def __init__(self, kubeconfig: str, context: str) -> None:
            pass

        def get(self, path: str) -> Json | None:
            if there is None:
                raise ResourceError("the API cannot be reached")
            return there.get(path)

    monkeypatch.setattr(kept_objects, "KubernetesApi", Api)
    said: list[str] = []

    def say(text: str, lasting: bool) -> None:
        assert lasting
        said.append(text)

    KeptObjects().delete("space-kept", {**OUTPUTS, **changes}, Operation(say, Event()))
    assert len(said) <= 1
    return "".join(said)


def there(*kept: Json, **metadata: str) -> dict[str, Json]:
    return {entry["apiPath"]: {"metadata": metadata} for entry in kept}


def test_what_is_left_and_how_to_remove_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert message(monkeypatch, there(CLAIM, NAMESPACE, *CRDS)).splitlines() == [
        "Left in the cluster on purpose. To remove it as well:",
        "  kubectl --kubeconfig '/home/me/my config' --namespace space delete persistentvolumeclaim/results"
        "  # the benchmark runs",
        "  kubectl --kubeconfig '/home/me/my config' delete namespace/space  # all of it",
        "  kubectl --kubeconfig '/home/me/my config' delete customresourcedefinition/rayjobs.ray.io "
        "customresourcedefinition/rayservices.ray.io  # every one",
        "Hint.",
    ]


def test_only_what_is_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "results" not in message(monkeypatch, there(NAMESPACE))
    assert message(monkeypatch, {}) == ""
    assert message(monkeypatch, there(NAMESPACE, deletionTimestamp="now")) == ""


def test_the_way_in(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "  kubectl --context prod delete namespace/space" in message(
        monkeypatch, there(NAMESPACE), kubeconfig="", context="prod"
    )
    content = message(monkeypatch, there(NAMESPACE), kubeconfig="users:\n- token: secret\n")
    assert "  kubectl delete namespace/space" in content
    assert "secret" not in content


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    text = message(monkeypatch, None)
    assert text.startswith("What this stack leaves in the cluster was not seen: the API cannot be reached\n")
    assert "delete namespace/space" in text
    assert "kubectl" not in message(monkeypatch, None, clusterGoes=True)


def test_a_cluster_that_goes_leaves_its_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {
        **there(NAMESPACE),
        CLAIM["apiPath"]: {"metadata": {}, "spec": {"volumeName": "pvc-1"}},
        "/api/v1/persistentvolumes/pvc-1": {"spec": {"csi": {"volumeHandle": "d1e5"}}},
    }
    text = message(monkeypatch, seen, clusterGoes=True)
    assert "  doctl compute volume delete d1e5  # the benchmark runs" in text
    assert "kubectl" not in text
    assert message(monkeypatch, there(NAMESPACE), clusterGoes=True) == ""
    unbound = {CLAIM["apiPath"]: {"metadata": {}, "spec": {}}}
    assert message(monkeypatch, unbound, clusterGoes=True) == ""


def kept(**settings: Any) -> list[str]:
    access = KubernetesAccess("/kubeconfig")
    seen = registered(lambda opts: [Registered("kept", stack(**settings), "pd-test", "pd-space", access, opts)])
    assert seen[0].inputs["clusterGoes"] is False
    return [f"{entry['kind']}/{entry['name']}" for entry in seen[0].inputs["kept"]]


def test_what_a_stack_keeps() -> None:
    own = ["PersistentVolumeClaim/results", "Namespace/pd-space"]
    ray = [
        f"CustomResourceDefinition/{name}.ray.io" for name in ("rayclusters", "raycronjobs", "rayjobs", "rayservices")
    ]
    assert kept() == [*own, *ray]
    assert kept(rayOperator={"install": "preinstalled"}) == own
    assert kept(cluster={"provider": "stack", "stack": "mi325x-4node"}) == own
    policy = {"provider": "existing", "nicClusterPolicy": {"fabric0": ["eth1"]}}
    assert kept(cluster=policy) == [*own, "NicClusterPolicy/nic-cluster-policy", *ray]


def test_the_content_of_a_kubeconfig_is_secret_and_waited_for() -> None:
    nodes: list[pulumi.Resource] = []

    def register(opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
        nodes.append(pulumi.CustomResource("test:index:Nodes", "nodes", {}, opts))
        access = KubernetesAccess(pulumi.Output.secret("users: []\n"), waits=True, depends_on=nodes)
        made = [c(c.__name__, stack(), "pd-test", "pd-space", access, opts) for c in (ClusterPreflight, Registered)]
        return [*nodes, *made]

    _, preflight, objects = registered(register)
    for seen in (preflight, objects):
        assert is_secret(seen.wire["kubeconfig"])
        assert seen.depends_on == ["nodes"]
    assert preflight.inputs["wait"] is True


def test_a_namespace_that_was_there_before_is_not_for_the_stack_to_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    text = message(monkeypatch, there(CLAIM, NAMESPACE), namespaceWasThere=True)
    assert "persistentvolumeclaim/results" in text
    assert "delete namespace" not in text


@pytest.mark.parametrize(
    ("writers", "was_there"),
    [
        (None, False),
        ([("kubectl-create", "")], True),
        ([("pulumi-kubernetes-1a2b", "")], False),  # from an earlier life of the stack
        ([("pulumi-kubernetes-1a2b", ""), ("kube-controller-manager", "status")], False),
        ([("pulumi-kubernetes-1a2b", ""), ("kubectl-create", "")], True),  # taken over by an earlier life
    ],
)
def test_whose_namespace_it_is_is_found_out_first(
    monkeypatch: pytest.MonkeyPatch, writers: list[tuple[str, str]] | None, was_there: bool
) -> None:
    fields = [{"manager": manager, "subresource": part} for manager, part in writers or []]

    class Api:
        def __init__(self, kubeconfig: str, context: str) -> None:
            pass

        def get(self, path: str) -> Json | None:
            return None if writers is None else {"metadata": {"managedFields": fields}}

    monkeypatch.setattr(kept_objects, "KubernetesApi", Api)
    _, outputs = KeptObjects().create({**OUTPUTS, "stack": "mine"}, Operation(lambda text, lasting: None, Event()))
    assert outputs == {"namespaceWasThere": was_there}


def test_a_stack_that_moves_says_what_stays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    message(monkeypatch, there(CLAIM, NAMESPACE))  # sets the API
    news = {**OUTPUTS, "stack": "mine", "namespace": "elsewhere"}
    KeptObjects().update("id", OUTPUTS, news, Operation(lambda text, lasting: said.append(text), Event()))
    assert "--namespace space delete persistentvolumeclaim/results" in "".join(said)
