"""What the program registers so that a destroy can say what it leaves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from registrations import is_secret, program_registers, registered, stack

from infra.cluster.access import KubernetesAccess
from infra.cluster_preflight import ClusterPreflight
from infra.kept_objects import KeptObjects, kept_of
from infra.kubernetes_program import deploy_node_pool, deploy_on_kubernetes
from serving.cluster import NodePoolStack
from serving.stack import parse_settings

Json = dict[str, Any]


def kept(**settings: Any) -> list[str]:
    return [f"{entry['kind']}/{entry['name']}" for entry in kept_of(stack(**settings), "pd-space")]


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
        preflight = ClusterPreflight("preflight", stack(), "pd-test", "pd-space", access, opts)
        return [*nodes, preflight, KeptObjects("kept", "pd-test", access, [], cluster_goes=False, opts=opts)]

    _, preflight, objects = registered(register)
    for seen in (preflight, objects):
        assert is_secret(seen.wire["kubeconfig"])
        assert seen.depends_on == ["nodes"]
    assert preflight.inputs["wait"] is True


def registered_by(program: Callable[[], None]) -> Json:
    seen = program_registers(program)
    provider = next(one for one in seen if one.type == "pulumi:providers:kubernetes")
    assert "kept" in provider.depends_on
    return next(one.inputs for one in seen if one.kind == "KeptObjects")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_the_program_registers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    preinstalled = {"install": "preinstalled"}
    inputs = registered_by(lambda: deploy_on_kubernetes(stack(namespace="pd-space", rayOperator=preinstalled)))
    assert (inputs["clusterGoes"], inputs["kubeconfigOf"], len(inputs["kept"])) == (False, "", 2)
    monkeypatch.setenv("DIGITALOCEAN_TOKEN", "a token")
    monkeypatch.setattr("infra.cluster.doks._offered_versions", list)
    monkeypatch.setattr("infra.cluster.doks._kubeconfig", lambda configs: "users: []\n")
    values = {"cluster": {"provider": "doks"}, "nodePool": {"nodes": 4}, "rayOperator": preinstalled}
    pool = parse_settings(values)
    assert isinstance(pool, NodePoolStack)
    inputs = registered_by(lambda: deploy_node_pool(pool))
    assert (inputs["clusterGoes"], inputs["kept"], inputs["hint"]) == (True, [], "")
    assert inputs["kubeconfigOf"] == pulumi.get_stack()
