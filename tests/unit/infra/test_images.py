"""`images.build`: what is built, that a preview builds nothing, and that pods take what was built by its digest."""

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest
from registrations import BUILT, Registration, program_registers, stack

from infra.kubernetes_program import deploy_on_kubernetes
from serving.errors import ConfigError
from serving.image_arguments import build_arguments
from tests.shell import ROOT

REGISTRY = "registry.example:5000/team"
BUILD = {"build": {"registry": REGISTRY}, "pullSecret": "ours"}


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def registrations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Registration]:
    """What the whole program registers for a stack that builds its images and fills an NFS export."""
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    weights = {"mode": "nfs", "revision": "0" * 40, "nfs": {"server": "10.0.0.5", "path": "/export"}}
    settings = stack(images=BUILD, weights=weights, rayOperator={"install": "preinstalled"})
    return program_registers(lambda: deploy_on_kubernetes(settings))


def test_both_are_built_from_their_dockerfile_with_the_pinned_versions(registrations: list[Registration]) -> None:
    images = {seen.name: seen.inputs for seen in registrations if seen.type == "docker-build:index:Image"}
    assert images.keys() == {"engine-rocm", "benchmark"}
    for name, image in (("rocm", images["engine-rocm"]), ("benchmark", images["benchmark"])):
        assert (ROOT / image["dockerfile"]["location"]).is_file()
        assert image["buildArgs"] == build_arguments()[name]
        assert f" AS {image['target']}\n" in (ROOT / image["dockerfile"]["location"]).read_text()
        assert image["push"] is True
        assert image["buildOnPreview"] is False
    engine = images["engine-rocm"]
    assert engine["tags"] == [f"{REGISTRY}/engine-rocm:stack"]
    assert engine["cacheFrom"] == [{"registry": {"ref": f"{REGISTRY}/engine-rocm:cache"}}]
    assert engine["cacheTo"][0]["registry"]["ref"] == f"{REGISTRY}/engine-rocm:cache"


def test_every_pod_takes_what_was_built_by_its_digest(registrations: list[Registration]) -> None:
    found = {
        (seen.name, container["image"]): pod["imagePullSecrets"]
        for seen in registrations
        for pod in _pods(seen.inputs)
        for container in pod["containers"]
    }
    engine, benchmark = (f"{REGISTRY}/{name}:stack@{BUILT}" for name in ("engine-rocm", "benchmark"))
    assert {name for name, image in found if image == engine} == {"ray-service", "fabric-inspector", "rdma-gate"}
    assert {name for name, image in found if image == benchmark} == {"benchmark", "weights-download"}
    assert len(found) == 5
    assert all(secrets == [{"name": "ours"}] for secrets in found.values())
    assert '""' not in json.dumps([seen.inputs for seen in registrations if seen.name == "benchmark"])


@pytest.mark.parametrize(
    ("images", "key", "says"),
    [
        ({}, "images.engine", "is required on Kubernetes"),
        ({"engine": f"e@sha256:{'1' * 64}"}, "images.benchmark", "images.build"),
        ({**BUILD, "engine": f"e@sha256:{'1' * 64}"}, "images.engine", "is built"),
        ({"build": {"registry": "https://registry.example"}}, "images.build.registry", "no http://"),
        ({"build": {"registry": "registry.example/team:1"}}, "images.build.registry", "no tag"),
        ({"build": {}}, "images.build.registry", "required"),
    ],
)
def test_what_is_neither_given_nor_built_is_one_line(images: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        stack(images=images)
    assert key in str(caught.value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_platform_without_a_dockerfile_is_not_built() -> None:
    with pytest.raises(ConfigError, match=r"images\.build.*no engine image for platform cuda"):
        stack(images=BUILD, platform="cuda")


def test_a_build_that_gives_no_digest_is_not_deployed() -> None:
    with pytest.raises(ConfigError, match="has no digest"):
        stack(images=BUILD).with_images("registry.example/engine:1", "registry.example/benchmark:1")


def _pods(value: Any) -> list[dict[str, Any]]:
    """Every pod's spec that is somewhere in it."""
    if isinstance(value, dict):
        own = [value] if "containers" in value else []
        return own + [pod for item in value.values() for pod in _pods(item)]
    return [pod for item in value for pod in _pods(item)] if isinstance(value, list) else []
