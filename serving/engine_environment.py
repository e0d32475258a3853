"""Setting `cluster.nodes.environment`: variables of engine processes that depend on the nodes they run on."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from serving.errors import ConfigError
from serving.settings_base import number_as_text

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"  # Kubernetes allows more; shells and `ray` do not read it


def _text(value: Any) -> str:
    text = number_as_text(value)
    if not isinstance(text, str):  # YAML reads yes, no, true and false as no text
        raise ValueError("a variable is text or a number: quote it")
    return text


Variable = Annotated[str, BeforeValidator(_text)]

# What this repository, Ray or KubeRay sets, by whoever would be surprised: name -> why it is no choice. VLLM_CACHE_ROOT
# is one: serving/replica/callback.py makes a folder for each replica in it.
_NOT_A_CHOICE: dict[str, str] = {
    **dict.fromkeys(
        (
            *("VLLM_NIXL_SIDE_CHANNEL_PORT", "VLLM_DP_MASTER_PORT", "VLLM_CPU_OMP_THREADS_BIND"),
            *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"),
        ),
        "differs between replicas and is set for each",  # serving/replica/callback.py
    ),
    **dict.fromkeys(
        ("VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_HOST_IP", "HOST_IP", "POD_IP"), "is an address, another one in each pod"
    ),
    **dict.fromkeys(
        ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"), "is set by Ray for each rank"
    ),
    **dict.fromkeys(
        (  # ray-operator/controllers/ray/common/pod.go setContainerEnvVars, SetContainerTokenAuthEnvVars (1.6)
            *("RAY_ADDRESS", "RAY_PORT", "RAY_IP", "FQ_RAY_IP", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_CLUSTER_NAME"),
            *("RAY_CLUSTER_NAMESPACE", "RAY_CLOUD_INSTANCE_ID", "RAY_NODE_TYPE_NAME", "KUBERAY_GEN_RAY_START_CMD"),
        ),
        "is set by KubeRay",
    ),
    **dict.fromkeys(("RAY_USAGE_STATS_ENABLED", "VLLM_NO_USAGE_STATS"), "is set: nothing is reported to anybody"),
    **dict.fromkeys(("HF_HOME", "HF_HUB_OFFLINE"), "follows from weights.mode"),
    "HF_TOKEN": "would be stored and shown in plain text, which huggingFaceToken is not",
}


def check_environment(variables: dict[str, str]) -> None:
    """Names that can be set without breaking what sets them already. Raises ConfigError."""
    for name in variables:
        key = f"cluster.nodes.environment.{name}"
        if not re.fullmatch(_NAME, name):
            raise ConfigError(key, "is no name of a variable", "letters, digits and _, no digit first")
        if name in _NOT_A_CHOICE:
            raise ConfigError(key, _NOT_A_CHOICE[name], "remove it")
