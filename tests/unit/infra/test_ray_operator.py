"""Who installs KubeRay's operator, with which rights, and what stays when it goes."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from registrations import Registration, registered

from infra.ray_operator import chart_values, ray_operator
from serving.kubernetes_settings import RayOperator
from serving.versions import versions

CRD = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
SYSTEM = {"doks.digitalocean.com/node-pool": "system"}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that Pulumi.yaml would be in."""
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: str(tmp_path))
    return tmp_path


def made(looks_after: str = "", **settings: Any) -> dict[str, Registration]:
    operator = RayOperator.model_validate(settings).in_namespace("kuberay")
    found = registered(lambda opts: ray_operator(operator, "owner", opts, namespace=looks_after, node_selector=SYSTEM))
    return {seen.kind: seen for seen in found}


def test_a_preinstalled_operator_is_left_alone() -> None:
    assert made(install="preinstalled") == {}


def test_the_pinned_public_chart_goes_into_a_namespace_of_its_own() -> None:
    found = made()
    public = versions()["kuberay"]
    chart = found["Chart"]
    assert chart.inputs["chart"] == public["chart"]
    assert chart.inputs["version"] == public["version"]
    assert chart.inputs["repositoryOpts"] == {"repo": public["chart_repository"]}
    assert chart.inputs["namespace"] == "kuberay" == found["Namespace"].inputs["metadata"]["name"]
    assert chart.depends_on == ["kuberay"]


def test_a_local_folder_is_found_from_the_project(project: Path) -> None:
    (project / "charts" / "mine").mkdir(parents=True)
    chart = made(chart="charts/mine")["Chart"]
    assert chart.inputs["chart"] == str(project / "charts" / "mine")
    assert "version" not in chart.inputs
    assert "repositoryOpts" not in chart.inputs


def test_a_packed_chart_is_found_from_the_project(project: Path) -> None:
    chart = made(chart="mine.tgz")["Chart"]
    assert chart.inputs["chart"] == str(project / "mine.tgz")
    assert "version" not in chart.inputs


def test_a_name_is_one_of_the_public_repository() -> None:
    chart = made(chart="ray-operator")["Chart"]
    public = versions()["kuberay"]
    assert (chart.inputs["chart"], chart.inputs["version"]) == ("ray-operator", public["version"])
    assert chart.inputs["repositoryOpts"] == {"repo": public["chart_repository"]}


def test_a_chart_in_a_registry_is_taken_by_its_name() -> None:
    chart = made(chart="oci://registry.example/kuberay-operator")["Chart"]
    assert chart.inputs["chart"] == "oci://registry.example/kuberay-operator"
    assert chart.inputs["version"] == versions()["kuberay"]["version"]
    assert "repositoryOpts" not in chart.inputs


def test_the_operator_of_one_stack_has_rights_in_that_stacks_namespace_only() -> None:
    values = made("pd-space", namespace="pd-space")["Chart"].inputs["values"]
    assert values["singleNamespaceInstall"] is True
    assert values["watchNamespace"] == ["pd-space"]
    assert values["nodeSelector"] == SYSTEM


def test_no_second_namespace_for_an_operator_in_the_stacks_own() -> None:
    assert list(made("pd-space", namespace="pd-space")) == ["Chart"]


def test_the_operator_of_a_node_pool_looks_after_all_namespaces() -> None:
    values = chart_values(RayOperator(), "", {})
    assert "singleNamespaceInstall" not in values
    assert "watchNamespace" not in values


def transformed(type_: str) -> pulumi.ResourceTransformResult | None:
    (transform,) = made()["Chart"].transforms
    props = {"metadata": {"name": "rayservices.ray.io", "annotations": {"kept": "as it is"}}, "spec": {}}
    return transform(pulumi.ResourceTransformArgs(True, type_, "kuberay-operator:x", props, pulumi.ResourceOptions()))


def test_definitions_stay_and_are_applied_under_one_name() -> None:
    result = transformed(CRD)
    assert result
    assert result.opts.retain_on_delete
    metadata: Any = result.props["metadata"]
    assert metadata["annotations"] == {"kept": "as it is", "pulumi.com/patchFieldManager": "pd-mi325x"}
    assert metadata["name"] == "rayservices.ray.io"


def test_nothing_else_of_the_chart_stays() -> None:
    assert transformed("kubernetes:apps/v1:Deployment") is None
