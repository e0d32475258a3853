"""An operator from a chart in a local folder, through the real provider. The chart is a stand-in for KubeRay's."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from kubernetes import client

from infra.ray_operator import ray_operator
from serving.stack import Stack
from serving.versions import versions
from tests.cluster.piece import Piece
from tests.shell import assert_one_clear_line
from tools.rehearsal.cluster import SimulatedCluster

CHART = Path(__file__).with_name("charts") / "operator"
DEFINITION = "operateds.pd-mi325x.test"
CPU_NODES = {"doks.digitalocean.com/node-pool": "system"}


def register(stack: Stack, stack_name: str, namespace: str, opts: pulumi.ResourceOptions) -> None:
    """What a stack does: the operator, then an object of a kind that the operator's chart defines."""
    from pulumi_kubernetes.apiextensions import CustomResource

    made = ray_operator(stack.ray_operator, stack_name, opts, namespace=namespace, node_selector=CPU_NODES)
    CustomResource(
        "operated",
        api_version="pd-mi325x.test/v1",
        kind="Operated",
        metadata={"name": "operated", "namespace": namespace},
        spec={"size": 1},
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=made)),
    )


@pytest.fixture
def piece(tmp_path: Path, cluster: SimulatedCluster, namespace: str, api: client.ApiClient) -> Iterator[Piece]:
    made = Piece(tmp_path, cluster, namespace, "tests.cluster.test_ray_operator:register")
    shutil.copytree(CHART, made.folder / "chart")
    yield made
    extensions: Any = client.ApiextensionsV1Api(api)
    if description(extensions):
        extensions.delete_custom_resource_definition(DEFINITION)


def description(extensions: Any) -> str | None:
    """Of the one version that the chart's definition has; None when the cluster has no such definition."""
    found = [d for d in extensions.list_custom_resource_definition().items if d.metadata.name == DEFINITION]
    return found[0].spec.versions[0].schema.open_apiv3_schema.description if found else None


def redefine(piece: Piece, old: str, new: str) -> None:
    """Another release of the chart, with another definition."""
    file = piece.folder / "chart" / "crds" / "operated.yaml"
    assert f"description: {old}" in file.read_text()
    file.write_text(file.read_text().replace(f"description: {old}", f"description: {new}"))


def test_operator_from_a_folder(piece: Piece, core: Any, api: client.ApiClient) -> None:
    apps: Any = client.AppsV1Api(api)
    rbac: Any = client.RbacAuthorizationV1Api(api)
    extensions: Any = client.ApiextensionsV1Api(api)
    home = f"{piece.namespace}-operator"
    settings = {"rayOperator": {"chart": "chart", "namespace": home}}

    up = piece.up(**settings)
    assert up.ok, up.text
    deployment = apps.read_namespaced_deployment("operator", home)
    assert deployment.status.available_replicas == 1, "Pulumi waits for it"
    pod = deployment.spec.template.spec
    assert pod.containers[0].image.endswith(f":v{versions()['kuberay']['version']}")
    assert pod.containers[0].args == [f"--watch-namespace={piece.namespace}"]
    assert pod.node_selector == CPU_NODES
    assert [role.metadata.name for role in rbac.list_namespaced_role(piece.namespace).items] == [f"operator-{home}"]
    assert f"operator-{home}" not in {role.metadata.name for role in rbac.list_cluster_role().items}
    assert piece.unchanged()

    destroyed = piece.pulumi("destroy --yes --skip-preview")
    assert destroyed.ok, destroyed.text
    ended = [line for line in destroyed.text.splitlines() if " deleted (" in line]
    order = [next(i for i, line in enumerate(ended) if kind in line) for kind in (":Operated ", ":Deployment ")]
    assert order == sorted(order), f"the operator must see its objects go:\n{destroyed.text}"
    assert home not in {found.metadata.name for found in core.list_namespace().items}
    assert description(extensions) == "first", "other stacks have objects of this kind"

    redefine(piece, "first", "second")
    again = piece.up(**settings)
    assert again.ok, again.text
    assert description(extensions) == "second"
    redefine(piece, "second", "third")
    in_place = piece.up(**settings)
    assert in_place.ok, in_place.text
    assert description(extensions) == "third"
    assert piece.pulumi("destroy --yes --skip-preview").ok


def test_definitions_of_somebody_else_are_not_changed(piece: Piece, api: client.ApiClient) -> None:
    extensions: Any = client.ApiextensionsV1Api(api)
    body = yaml.safe_load((CHART / "crds" / "operated.yaml").read_text())
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "theirs"
    extensions.create_custom_resource_definition(body)
    up = piece.up(rayOperator={"chart": "chart", "namespace": f"{piece.namespace}-operator"})
    assert not up.ok
    assert "conflict" in up.text
    assert description(extensions) == "theirs"
    assert piece.pulumi("destroy --yes --skip-preview").ok


def test_a_chart_that_the_provider_cannot_read(piece: Piece) -> None:
    (piece.folder / "chart" / "Chart.yaml").write_text("apiVersion: [\n")
    up = piece.up(rayOperator={"chart": "chart", "namespace": f"{piece.namespace}-operator"})
    assert_one_clear_line(up, "Chart resource 'kuberay-operator' has a problem", "cannot load Chart.yaml")
    assert "shut down" not in up.text, up.text
    assert piece.pulumi("destroy --yes --skip-preview").ok
