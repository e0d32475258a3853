"""What is said about what a stack leaves, at the end of `pulumi destroy` and when it moves."""

from threading import Event
from typing import Any

import pytest

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
    "kubeconfigOf": "",
    "stack": "mine",
    "namespace": "space",
    "kept": [CLAIM, NAMESPACE, *CRDS],
    "hint": "Hint.",
    "clusterGoes": False,
}


def cluster(monkeypatch: pytest.MonkeyPatch, there: dict[str, Json] | None, volumes: list[Json] | None = None) -> None:
    """One with these objects (path -> object) behind every kubeconfig; None: its API cannot be reached."""

    class Api:
        def __init__(self, kubeconfig: str, context: str) -> None:
            if kubeconfig == "/gone":
                raise ResourceError("kubeconfig /gone does not exist")
            self.server = "https://elsewhere" if "elsewhere" in kubeconfig + context else "https://here"

        def get(self, path: str) -> Json | None:
            if there is None:
                raise ResourceError("the API cannot be reached")
            return there.get(path)

        def list(self, path: str) -> list[Json]:
            assert path == "/api/v1/persistentvolumes"
            if there is None:
                raise ResourceError("the API cannot be reached")
            return volumes or []

    monkeypatch.setattr(kept_objects, "KubernetesApi", Api)


def message(
    monkeypatch: pytest.MonkeyPatch, there: dict[str, Json] | None, volumes: list[Json] | None = None, **changes: Any
) -> str:
    """What a destroy says in such a cluster."""
    cluster(monkeypatch, there, volumes)
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
    content = message(
        monkeypatch, there(NAMESPACE), kubeconfig="users:\n- token: secret\n", kubeconfigOf="mi325x-4node"
    )
    assert content.splitlines()[1:3] == [
        "  pulumi stack output kubeconfig --show-secrets --stack mi325x-4node > FILE",
        "  kubectl --kubeconfig FILE delete namespace/space  # all of it",
    ]
    assert "token" not in content


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    text = message(monkeypatch, None)
    assert text.startswith("What this stack leaves in the cluster was not seen: the API cannot be reached\n")
    assert "delete namespace/space" in text
    assert "delete namespace" not in message(monkeypatch, None, namespaceWasThere=True)
    gone = message(monkeypatch, None, clusterGoes=True)
    assert "kubectl" not in gone
    assert "doctl compute volume list" in gone


def test_a_cluster_that_goes_leaves_its_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever's: those of the stacks that were on a pool, too."""
    claims = [{"namespace": name, "name": "results"} for name in ("pd-2p1d", "agg-3")]
    volumes = [
        {"spec": {"csi": {"volumeHandle": f"d1e{number}"}, "claimRef": claim}}
        for number, claim in enumerate([*claims, None])
    ]
    nfs = {"spec": {"nfs": {"server": "10.0.0.5"}, "claimRef": claims[0]}}
    text = message(monkeypatch, there(NAMESPACE), [*volumes, nfs], clusterGoes=True, hint="")
    assert text.splitlines()[1:] == [
        "  doctl compute volume delete d1e0  # pd-2p1d/results",
        "  doctl compute volume delete d1e1  # agg-3/results",
        "  doctl compute volume delete d1e2  # no claim",
    ]
    assert message(monkeypatch, there(NAMESPACE), [nfs], clusterGoes=True) == ""


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

    there = {} if writers is None else {NAMESPACE["apiPath"]: {"metadata": {"managedFields": fields}}}
    cluster(monkeypatch, there)
    _, outputs = KeptObjects().create(OUTPUTS, Operation(lambda text, lasting: None, Event()))
    assert outputs == {"namespaceWasThere": was_there}
    # Another file or context may lead to another cluster, in which the namespace is somebody else's.
    for changed in ({"kubeconfig": "/other"}, {"context": "elsewhere"}):
        assert updated({**OUTPUTS, "namespaceWasThere": not was_there}, {**OUTPUTS, **changed})[1] == outputs
    same = {**OUTPUTS, "namespaceWasThere": not was_there}
    assert updated(same, {**OUTPUTS, "hint": "Another."})[1] == {"namespaceWasThere": not was_there}


def updated(olds: Json, news: Json) -> tuple[str, Json]:
    """(what an update says, its outputs)."""
    said: list[str] = []
    outputs = KeptObjects().update("id", olds, news, Operation(lambda text, lasting: said.append(text), Event()))
    return "".join(said), outputs


MOVED = {**CLAIM, "apiPath": CLAIM["apiPath"].replace("/space/", "/other/")}


@pytest.mark.parametrize("cluster_goes", [False, True])
def test_another_namespace_leaves_the_old_one_behind(monkeypatch: pytest.MonkeyPatch, cluster_goes: bool) -> None:
    """Not what belongs to the whole cluster; and the cluster itself does not go, whoever owns it."""
    cluster(monkeypatch, there(CLAIM, NAMESPACE, *CRDS), [{"spec": {"csi": {"volumeHandle": "d1e5"}}}])
    olds = {**OUTPUTS, "clusterGoes": cluster_goes}
    text, _ = updated(olds, {**olds, "namespace": "other", "kept": [MOVED, *CRDS]})
    assert text.startswith("No longer this stack's, and left in the cluster. To remove it:\n")
    assert "--namespace space delete persistentvolumeclaim/results" in text
    assert "delete namespace/space" in text
    assert "customresourcedefinition" not in text
    assert "The cluster goes" not in text
    assert "Hint" not in text


def test_what_a_stack_no_longer_keeps_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after rayOperator.install: preinstalled."""
    cluster(monkeypatch, there(CLAIM, NAMESPACE, *CRDS))
    text, _ = updated(OUTPUTS, {**OUTPUTS, "kept": [CLAIM, NAMESPACE]})
    assert "customresourcedefinition/rayjobs.ray.io" in text
    assert "results" not in text
    assert updated({**OUTPUTS, "kept": [CLAIM, NAMESPACE]}, OUTPUTS)[0] == ""


def test_another_cluster_leaves_everything_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster(monkeypatch, there(CLAIM, NAMESPACE, *CRDS))
    text, _ = updated({**OUTPUTS, "context": "a"}, {**OUTPUTS, "context": "elsewhere"})
    assert "--context a --namespace space delete persistentvolumeclaim/results" in text
    assert "customresourcedefinition/rayjobs.ray.io" in text
    # The same cluster by another file, and one that cannot be told any more.
    assert updated(OUTPUTS, {**OUTPUTS, "kubeconfig": "/other"})[0] == ""
    assert updated({**OUTPUTS, "kubeconfig": "/gone"}, OUTPUTS)[0] == ""
