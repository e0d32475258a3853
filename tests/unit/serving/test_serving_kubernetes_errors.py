"""Bad settings of a stack on Kubernetes: nodes, weights, operator, addresses. One line that names the key."""

from typing import Any

import pytest
from serving_command import QWEN, RenderSettings, assert_blames

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CPU = {"model": "rehearsal-qwen3-moe", "platform": "cpu", "weights": {"mode": "local", "path": "/models/rehearsal"}}


def on_nodes(**nodes: Any) -> dict[str, Any]:
    """QWEN on nodes that differ in these keys."""
    return QWEN | {"cluster": {"provider": "doks", "nodes": nodes}}


# case -> settings, the key the line must blame, what else it must say
CASES: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "no quantity": (
        QWEN | {"cluster": {"provider": "doks", "nodes": {"headMemory": "10GB"}}},
        "cluster.nodes.headMemory",
        ["10GB"],
    ),
    "no size": (QWEN | {"cluster": {"provider": "doks"}, "results": {"size": "huge"}}, "results.size", ["huge"]),
    "less than no device": (
        QWEN | {"cluster": {"provider": "doks", "nodes": {"rdmaResources": {"rdma/fabric0": -1}}}},
        "cluster.nodes.rdmaResources.rdma/fabric0",
        ["greater than 0"],
    ),
    "the cluster's own namespace": (QWEN | {"namespace": "kube-system"}, "namespace", ["kube-system"]),
    "weights of nowhere": (
        QWEN | {"weights": {"mode": "hub", "revision": COMMIT}, "modelSource": "/data/x"},
        "weights.mode",
        ["/data/x"],
    ),
    "a branch for a commit": (QWEN | {"weights": {"mode": "hub", "revision": "main"}}, "weights.revision", ["'main'"]),
    "half a commit": (
        QWEN | {"weights": {"mode": "nfs", "revision": COMMIT[:12], "nfs": {"server": "s", "path": "/e"}}},
        "weights.revision",
        ["40 characters"],
    ),
    "a commit of a directory": (
        QWEN | {"weights": {"mode": "local", "path": "/w", "revision": COMMIT}},
        "weights.revision",
        ["mode: local", "remove it"],
    ),
    "a size of no volume": (
        QWEN | {"weights": {"mode": "hub", "revision": COMMIT, "size": "2Ti"}},
        "weights.size",
        ["goes with mode: nfs"],
    ),
    "a chart that nobody installs": (
        QWEN | {"rayOperator": {"install": "preinstalled", "chart": "./kuberay"}},
        "rayOperator.chart",
        ["install: chart"],
    ),
    "a place for what is there already": (
        QWEN | {"rayOperator": {"install": "preinstalled", "namespace": "kuberay"}},
        "rayOperator.namespace",
        ["install: chart"],
    ),
    "engines on a stack that serves nothing": (
        {"nodePool": {"nodes": 4}, "cluster": {"provider": "doks", "nodes": {"engineCpu": "96"}}},
        "cluster.nodes.engineCpu",
        ["nodePool", "stacks that serve"],
    ),
    "no GPUs for rocm": (on_nodes(gpusPerNode=0), "cluster.nodes.gpusPerNode", ["is 0", "rocm takes 8"]),
    "too few GPUs for a replica": (on_nodes(gpusPerNode=4), "cluster.nodes.gpusPerNode", ["is 4", "rocm takes 8"]),
    "no GPUs for cuda": (
        on_nodes(gpusPerNode=0, gpuResource="nvidia.com/gpu") | {"platform": "cuda"},
        "cluster.nodes.gpusPerNode",
        ["is 0", "cuda takes 1"],
    ),
    "GPUs of no name": (on_nodes(gpuResource=""), "cluster.nodes.gpuResource", ["is empty"]),
    "cuda on AMD": (QWEN | {"platform": "cuda"}, "cluster.nodes.gpuResource", ["amd.com/gpu", "cuda"]),
    "rocm on NVIDIA": (on_nodes(gpuResource="nvidia.com/gpu"), "cluster.nodes.gpuResource", ["nvidia.com/gpu", "rocm"]),
    "a CPU replica that takes eight GPUs": (QWEN | CPU, "platform", ["8 amd.com/gpu", "kind"]),
    "a GPU's name without a GPU": (
        QWEN | CPU | {"cluster": {"provider": "existing", "profile": "kind", "nodes": {"acceleratorType": "A100"}}},
        "cluster.nodes.acceleratorType",
        ["cpu replicas have none"],
    ),
    "a GPU's name that a shell would read": (
        on_nodes(acceleratorType="x'; reboot '"),
        "cluster.nodes.acceleratorType",
        ["reboot"],
    ),
    "a variable of each replica": (
        on_nodes(environment={"VLLM_NIXL_SIDE_CHANNEL_PORT": 5600}),
        "cluster.nodes.environment.VLLM_NIXL_SIDE_CHANNEL_PORT",
        ["differs between replicas", "remove it"],
    ),
    "a variable of each pod": (
        on_nodes(environment={"VLLM_HOST_IP": "10.0.0.1"}),
        "cluster.nodes.environment.VLLM_HOST_IP",
        ["another one in each pod"],
    ),
    "a token in plain text": (
        on_nodes(environment={"HF_TOKEN": "hf_secret"}),
        "cluster.nodes.environment.HF_TOKEN",
        ["huggingFaceToken"],
    ),
    "a variable that is true": (
        on_nodes(environment={"UCX_ROCM_COPY_DMABUF": True}),
        "cluster.nodes.environment.UCX_ROCM_COPY_DMABUF",
        ["quote it", "True"],
    ),
    "a variable that is a list": (
        on_nodes(environment={"UCX_NET_DEVICES": ["mlx5_0:1"]}),
        "cluster.nodes.environment.UCX_NET_DEVICES",
        ["text or a number"],
    ),
    "a variable that no shell reads": (
        on_nodes(environment={"UCX-TLS": "rc"}),
        "cluster.nodes.environment.UCX-TLS",
        ["no name of a variable"],
    ),
    "a range with host bits": (
        QWEN | {"cluster": {"provider": "doks", "vpcIpRange": "10.100.33.0/20"}},
        "cluster.vpcIpRange",
        ["host bits", "10.100.33.0/20"],
    ),
    "no address": (
        QWEN | {"cluster": {"provider": "doks", "allowApiFrom": ["999.1.1.1"]}},
        "cluster.allowApiFrom.0",
        ["999.1.1.1"],
    ),
    "an operator on somebody else's nodes": (
        QWEN | {"cluster": {"provider": "stack", "stack": "mi325x-4node"}, "rayOperator": {"install": "chart"}},
        "rayOperator",
        ["mi325x-4node"],
    ),
}
GOOD: list[dict[str, Any]] = [
    QWEN | {"weights": {"mode": "hub", "revision": COMMIT}},
    QWEN | {"weights": {"mode": "nfs", "revision": COMMIT, "size": "2Ti", "nfs": {"server": "s", "path": "/e"}}},
    QWEN | {"rayOperator": {"chart": "./kuberay", "namespace": "kuberay"}},
    QWEN | CPU | {"cluster": {"provider": "existing", "profile": "kind"}},
    on_nodes(gpuResource="nvidia.com/gpu", gpusPerNode=1) | {"platform": "cuda"},
    on_nodes(environment={"UCX_NET_DEVICES": "mlx5_0:1,mlx5_2:1", "UCX_IB_GID_INDEX": 3, "UCX_TLS": "rc,rocm_copy"}),
    on_nodes(environment={"UCX_TLS": "^tcp"}),
]


@pytest.mark.parametrize("case", CASES)
def test_bad_setting(case: str, render_settings: RenderSettings) -> None:
    settings, key, parts = CASES[case]
    assert_blames(render_settings(settings), key, parts)


@pytest.mark.parametrize("settings", GOOD)
def test_what_the_cases_spoil_is_good(settings: dict[str, Any], render_settings: RenderSettings) -> None:
    assert render_settings(settings).returncode == 0
