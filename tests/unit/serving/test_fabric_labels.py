"""Labels and annotations of a Node: values that Kubernetes takes, and facts that read back."""

import json
import re
from pathlib import Path

import pytest
from fabric_tree import describe, read

from serving.fabric import gpus
from serving.fabric.choose import choose
from serving.fabric.labels import label_value, node_annotations, node_labels
from serving.fabric.node import NodeFabric

KINDS = ["doks", "oci_mi300x", "pollara", "no_rdma", "nic_down", "soft_roce"]
# Kubernetes, labels and selectors: syntax and character set.
NAME = r"pd-mi325x/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
VALUE = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
MOST_ANNOTATIONS = 256 * 1024  # bytes on one object: apimachinery, TotalAnnotationSizeLimitB


@pytest.mark.parametrize("name", KINDS)
def test_kubernetes_takes_them(tmp_path: Path, name: str) -> None:
    fabric = read(tmp_path, name)
    choice = choose(fabric)
    for label, value in node_labels(fabric, choice).items():
        assert re.fullmatch(NAME, label)
        assert value is None or re.fullmatch(VALUE, value)
    annotations = node_annotations(fabric, choice)
    assert all(re.fullmatch(NAME, annotation) for annotation in annotations)
    assert sum(len(annotation) + len(value or "") for annotation, value in annotations.items()) < MOST_ANNOTATIONS / 8


def test_labels_of_a_fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "group_id", lambda path: 991)
    fabric = read(tmp_path, "doks")
    assert node_labels(fabric, choose(fabric)) == {
        "pd-mi325x/fabric": "unusable",  # the kernel has no way to GPU memory
        "pd-mi325x/fabric-nics": "8",
        "pd-mi325x/fabric-rate": "400",
        "pd-mi325x/fabric-link-layer": "roce",
        "pd-mi325x/fabric-gid-index": "3",
        "pd-mi325x/fabric-traffic-class": None,
        "pd-mi325x/gpu-direct": "none",
        "pd-mi325x/render-group": "991",
        "pd-mi325x/amdgpu": "6.16.13",
    }


def test_labels_say_when_ucx_chooses_right(tmp_path: Path) -> None:
    fabric = read(tmp_path, "oci_mi300x")
    labels = node_labels(fabric, choose(fabric))
    assert (labels["pd-mi325x/fabric"], labels["pd-mi325x/fabric-gid-index"]) == ("usable", "auto")
    assert labels["pd-mi325x/fabric-traffic-class"] == "41"


def test_labels_that_no_longer_hold_are_taken_away(tmp_path: Path) -> None:
    """The same keys on every node, so that a merge patch leaves nothing behind."""
    before, after = read(tmp_path / "a", "doks"), read(tmp_path / "b", "no_rdma")
    assert set(node_labels(before, choose(before))) == set(node_labels(after, choose(after)))
    labels = node_labels(after, choose(after))
    assert (labels["pd-mi325x/fabric"], labels["pd-mi325x/fabric-nics"]) == ("none", "0")
    assert labels["pd-mi325x/fabric-gid-index"] is None
    assert node_annotations(after, choose(after))["pd-mi325x/ucx-environment"] is None


def test_annotations_read_back(tmp_path: Path) -> None:
    fabric = read(tmp_path, "nic_down")
    choice = choose(fabric)
    annotations = {name: value or "" for name, value in node_annotations(fabric, choice).items()}
    assert NodeFabric.model_validate_json(annotations["pd-mi325x/fabric-facts"]) == fabric
    assert json.loads(annotations["pd-mi325x/ucx-environment"]) == choice.environment
    assert json.loads(annotations["pd-mi325x/fabric-excluded"])["mlx5_5:1"] == "port is DOWN (Disabled)"
    assert json.loads(annotations["pd-mi325x/fabric-findings"])[0]["code"] == "nic-lost"
    assert "\n" not in "".join(annotations.values())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6.16.13", "6.16.13"),
        ("6.10.5+dkms (x)", "6.10.5-dkms-x"),
        ("-a-", "a"),
        ("a" * 62 + "-b", "a" * 62),
        ("+", ""),
    ],
)
def test_any_text_becomes_a_value(text: str, value: str) -> None:
    assert label_value(text) == value


@pytest.mark.parametrize("name", KINDS)
def test_every_node_file_says_where_it_comes_from(name: str) -> None:
    text = (Path(__file__).with_name("fabric_nodes") / f"{name}.yaml").read_text()
    head = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("#"))
    assert "From " in head
    assert "Made up: " in head
    assert describe(name)["kernel"]
