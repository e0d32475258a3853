"""The checks of permissions against a real API server, as users with few of them and with a token that expired."""

import threading
from collections.abc import Callable, Sequence

import pytest
import yaml

from infra.provider.cluster_preflight import ClusterPreflight
from infra.provider.resource import Operation
from tests.cluster.conftest import Check, Json
from tools.rehearsal.cluster import SimulatedCluster


@pytest.fixture
def as_user(cluster: SimulatedCluster) -> Callable[..., str]:
    """The kubeconfig of a new user with these rules, for this process."""

    def make(name: str, rules: Sequence[Json], namespace: str | None) -> str:
        inside = yaml.safe_load(cluster.restricted_kubeconfig(name, rules, namespace).read_text())
        outside = yaml.safe_load(cluster.outside_kubeconfig.read_text())
        inside["clusters"][0]["cluster"] = outside["clusters"][0]["cluster"]
        return yaml.safe_dump(inside)

    return make


def test_a_user_of_one_namespace(
    as_user: Callable[..., str], namespace: str, lacks: Check, preflight_inputs: Json
) -> None:
    every = {"apiGroups": ["", "batch", "ray.io"], "resources": ["*"], "verbs": ["*"]}
    kubeconfig = as_user(f"{namespace}-admin", [every], namespace)
    assert lacks(kubeconfig=kubeconfig) == "", "it may do everything there, and looks nowhere else"
    core, batch, ray = lacks(kubeconfig=kubeconfig, namespace="another").splitlines()
    assert "; create namespaces in the whole cluster; ask" in core
    assert "create, delete, get, list, patch, watch configmaps, persistentvolumeclaims, secrets, services and" in core
    assert "cronjobs.batch" in batch
    assert "rayservices.ray.io in namespace another; ask" in ray
    preflight, said = ClusterPreflight(), []
    preflight.check({}, {**preflight_inputs, "kubeconfig": kubeconfig})
    preflight.create(preflight_inputs, Operation(lambda text, lasting: said.append(text), threading.Event()))
    assert any("may not list nodes and pods of the whole cluster" in line for line in said)


def test_a_user_who_may_only_look(as_user: Callable[..., str], namespace: str, lacks: Check) -> None:
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    lines = lacks(kubeconfig=as_user(f"{namespace}-viewer", rules, None)).splitlines()
    assert len(lines) == 3, "one for each API group"
    assert f"create, delete, patch rayservices.ray.io in namespace {namespace}" in "\n".join(lines)
    assert "create pods/exec" in "\n".join(lines)
    assert "get pods/log" not in "\n".join(lines)


def test_a_token_that_is_not_accepted(cluster: SimulatedCluster, lacks: Check) -> None:
    document = yaml.safe_load(cluster.outside_kubeconfig.read_text())
    document["users"][0]["user"] = {"token": "expired"}
    line = lacks(kubeconfig=yaml.safe_dump(document))
    assert "refused the credentials of" in line
    assert "\n" not in line
