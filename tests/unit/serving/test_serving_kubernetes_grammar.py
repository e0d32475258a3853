"""What a real API server, or a container runtime, refuses when the pod is made, is refused when settings are read."""

from typing import Any

import pytest
from rendered_services import IMAGES, engine_pod, stack
from serving_command import QWEN

from serving.errors import ConfigError
from serving.stack import parse_settings

LONG = "x" * 63
DIGEST = "sha256:" + "0a" * 32


def on_nodes(**nodes: Any) -> dict[str, Any]:
    return {"cluster": {"provider": "doks", "nodes": nodes}}


def policy(**interfaces: list[str]) -> dict[str, Any]:
    return {"cluster": {"provider": "existing", "nicClusterPolicy": interfaces}}


def taint(**toleration: Any) -> dict[str, Any]:
    return on_nodes(tolerations=[toleration])


def image(reference: str) -> dict[str, Any]:
    return {"images": {**IMAGES, "engine": reference}}


def local(path: str) -> dict[str, Any]:
    return {"weights": {"mode": "local", "path": path}}


def nfs(server: str = "10.0.0.5", path: str = "/e") -> dict[str, Any]:
    return {"weights": {"mode": "nfs", "revision": "a" * 40, "nfs": {"server": server, "path": path}}}


def chart(text: str) -> dict[str, Any]:
    return {"rayOperator": {"chart": text}}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (on_nodes(renderGroup=-1), "cluster.nodes.renderGroup", "greater than or equal to 0"),
    (on_nodes(renderGroup=2**31), "cluster.nodes.renderGroup", "2147483647"),
    (on_nodes(renderGroup=True), "cluster.nodes.renderGroup", "whole number"),
    (taint(key="a", operator="Exists", value="b"), "cluster.nodes.tolerations.0", "set operator: Equal"),
    (taint(key="a b"), "cluster.nodes.tolerations.0.key", "label's key"),
    (taint(key=""), "cluster.nodes.tolerations.0.key", "label's key"),
    (taint(key="a", value="b c"), "cluster.nodes.tolerations.0.value", "label's value"),
    (taint(key="a", value=LONG + "x"), "cluster.nodes.tolerations.0.value", "label's value"),
    (taint(key="a", operator="In", value="b"), "cluster.nodes.tolerations.0.operator", "'Equal'"),
    (taint(key="a", effect="NoRun"), "cluster.nodes.tolerations.0.effect", "'NoSchedule'"),
    (taint(key="a", tolerationSeconds=3), "cluster.nodes.tolerations.0.tolerationSeconds", "known here: key, operator"),
    *((image(bad), "images.engine", "has to be an image") for bad in ("a b", "foo:", "foo@", "a//b", "/a", "a/")),
    *((image(bad), "images.engine", "no http://") for bad in ("http://r.example/e:1", "https://r.example/e", "e:1\n")),
    *(
        (image(bad), "images.engine", "lower case")
        for bad in ("Team/engine:1", "r.example/Team/engine", "r.example/E:1")
    ),
    *((image(f"e@{bad}"), "images.engine", "whole digest") for bad in (DIGEST[:-1], DIGEST.upper(), "md5:" + "0" * 32)),
    (image("e:" + "x" * 129), "images.engine", "has to be an image"),
    *((image(bad), "images.engine", f"imagetools inspect {bad}`") for bad in ("e", "e:1", "r.example:5000/t/e:latest")),
    ({"images": {**IMAGES, "pullSecret": "My_Secret"}}, "images.pullSecret", "DNS name"),
    *((local(bad), "weights.path", "absolute path") for bad in ("models", "~/models", "/a/../b", "/..", "/a\n")),
    (local("/models/"), "weights.path", "write /models,"),
    (local("//a/./b"), "weights.path", "write /a/b,"),
    (nfs(path="e"), "weights.nfs.path", "absolute path"),
    (nfs(path="/a/.."), "weights.nfs.path", "absolute path"),
    (nfs(path="/a//b"), "weights.nfs.path", "write /a/b,"),
    *((nfs(bad), "weights.nfs.server", "host's name") for bad in ("", "a b", " a", "nfs://a", "a:/e", "a:2049", "a\n")),
    *(
        (on_nodes(gpuResource=bad), "cluster.nodes.gpuResource", "extended resource")
        for bad in ("cpu", "memory", "gpu", "AMD.com/gpu", "amd.com/gpu/x", "amd.com/", "/gpu", "amd.com/g pu")
    ),
    (on_nodes(gpuResource=f"amd.com/{LONG}x"), "cluster.nodes.gpuResource", "extended resource"),
    (on_nodes(gpuResource="kubernetes.io/gpu"), "cluster.nodes.gpuResource", "Kubernetes' own"),
    (on_nodes(rdmaResources={"memory": 1}), "cluster.nodes.rdmaResources.memory", "extended resource"),
    (on_nodes(rdmaResources={"requests.a/b": 1}), "cluster.nodes.rdmaResources.requests.a/b", "extended resource"),
    (on_nodes(rdmaResources={"rdma/ib": 0}), "cluster.nodes.rdmaResources.rdma/ib", "greater than 0"),
    (on_nodes(rdmaResources={"rdma/ib": True}), "cluster.nodes.rdmaResources.rdma/ib", "whole number"),
    (on_nodes(rdmaResources={"amd.com/gpu": 8}), "cluster.nodes.rdmaResources.amd.com/gpu", "gpusPerNode counts"),
    *(
        (on_nodes(**{key: {label: "x"}}), f"cluster.nodes.{key}.{label}", "label's key")
        for key in ("nodeSelector", "systemNodeSelector")
        for label in ("a b", "-a", "a/b/c", "A.com/b", LONG + "x", "a" * 254 + "/b")
    ),
    *(
        (on_nodes(**{key: {"a": bad}}), f"cluster.nodes.{key}.a", "label's value")
        for key in ("nodeSelector", "systemNodeSelector")
        for bad in ("b c", "-b", "b/c", LONG + "x", "b\n")
    ),
    *(
        (on_nodes(storageClass=bad), "cluster.nodes.storageClass", "DNS name")
        for bad in ("Fast", "a_b", "a..b", "-a", "a" * 254)
    ),
    (on_nodes(network="multus", hostDevices={"Net": "eth0"}), "cluster.nodes.hostDevices.Net", "DNS name"),
    (on_nodes(network="multus", hostDevices={"net": "e 0"}), "cluster.nodes.hostDevices.net", "network interface"),
    (policy(fabric0=[]), "cluster.nicClusterPolicy.fabric0", "name the network interfaces"),
    (policy(fabric0=[""]), "cluster.nicClusterPolicy.fabric0.0", "network interface"),
    (policy(**{"nvidia.com/x": ["eth0"]}), "cluster.nicClusterPolicy.nvidia.com/x", "rdma/NAME"),
    ({"namespace": "My_Space"}, "namespace", "Kubernetes name"),
    ({"rayOperator": {"namespace": "a" * 64}}, "rayOperator.namespace", "Kubernetes name"),
    *(
        (chart(bad), "rayOperator.chart", "a chart's name in KubeRay's public repository")
        for bad in ("ünï", "My_Chart", "a b", "-a", "a-", " ", "./a\n", "https://charts.example/a.tgz", "a" * 251)
    ),
    *(
        (chart(f"oci://{bad}"), "rayOperator.chart", "oci://REGISTRY/REPOSITORY/CHART in lower case")
        for bad in (
            "",
            "r.example",
            "r.example/",
            "r.example/Team/a",
            "r.example/a:1",
            f"r.example/a@{DIGEST}",
            "ünï/a",
        )
    ),
]
TAKEN: list[dict[str, Any]] = [
    on_nodes(renderGroup=0),
    on_nodes(renderGroup=2**31 - 1),
    taint(key="example.com/a.b_c", operator="Equal", value=""),
    taint(key="a", operator="Exists", value=""),
    *(
        image(good)
        for good in (
            *(
                f"{name}@{DIGEST}"
                for name in ("engine", "engine:1.2_A-b", "team/engine", "127.0.0.1:5000/a/b", "[::1]:5000/a")
            ),
            *(f"registry:5000/path:tag@{DIGEST}", f"r.example/a__b/c--d/e.f@{DIGEST}", "e@sha512:" + "0" * 128),
        )
    ),
    *(local(good) for good in ("/", "/models/a b", "/mnt/a..b")),
    *(nfs(good) for good in ("nfs-1.example.com", "10.0.0.5", "fd00::5", "nas_1")),
    on_nodes(gpuResource="amd.com/gpu_vf"),
    on_nodes(gpuResource=f"amd.com/{LONG}"),
    *(
        on_nodes(**{key: {label: value}})
        for key in ("nodeSelector", "systemNodeSelector")
        for label, value in {"a": "", LONG: LONG, "node.kubernetes.io/instance-type": "BM.GPU_1-x"}.items()
    ),
    on_nodes(storageClass="fast.ssd-1"),
    *(chart(good) for good in ("", "kuberay-operator", "my.chart", "./ünï", "/srv/My Chart", "../a", "a/b_c", "a.tgz")),
    *(chart(f"oci://{good}") for good in ("127.0.0.1:1/x", "registry.example/team/kuberay-operator")),
    policy(**{"rdma/fabric0": ["ens1f0np0"], "fabric1": ["ens2f0np0", "eth1"]}),
]


@pytest.mark.parametrize(("settings", "key", "words"), REFUSED)
def test_refused(settings: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_settings(QWEN | settings)
    assert refusal.value.key == key
    line = str(refusal.value)
    assert words in line
    assert "Value error" not in line
    assert "\n" not in line


@pytest.mark.parametrize("settings", TAKEN)
def test_taken(settings: dict[str, Any]) -> None:
    parse_settings(QWEN | settings)


def test_a_value_without_an_operator_counts() -> None:
    """As in Kubernetes, where Equal is the default: it would refuse Exists with a value."""
    tolerations = [{"key": "a", "value": "b"}, {"key": "c"}]
    pod = engine_pod(stack(**on_nodes(tolerations=tolerations)))
    assert pod["spec"]["tolerations"] == [
        {"key": "a", "operator": "Equal", "value": "b"},
        {"key": "c", "operator": "Exists"},
    ]
