"""Stacks on Kubernetes and what is rendered of them, for the tests."""

import shlex
from typing import Any

import yaml

from serving.ray_cluster import ray_service
from serving.stack import Stack, parse_stack

IMAGES = {"engine": "registry.example/engine@sha256:" + "1" * 64, "benchmark": "registry.example/b@sha256:" + "2" * 64}
BASE = {"model": "qwen3-235b-a22b-fp8", "topology": "2p1d", "scenario": "qwen-16k-1k", "images": IMAGES}


def stack(**changes: Any) -> Stack:
    return parse_stack({**BASE, "cluster": {"provider": "doks"}, **changes})


def of_profile(name: str) -> Stack:
    local = {"mode": "local", "path": "/models/rehearsal"}
    cpu = {"model": "rehearsal-qwen3-moe", "platform": "cpu", "weights": local} if name == "kind" else {}
    return stack(**cpu, cluster={"provider": "existing", "profile": name})


def spec(settings: Stack) -> dict[str, Any]:
    return ray_service(settings, "under-test", "under-test")["spec"]


def engine_pod(settings: Stack) -> dict[str, Any]:
    return spec(settings)["rayClusterConfig"]["workerGroupSpecs"][0]["template"]


def engine(settings: Stack) -> dict[str, Any]:
    return engine_pod(settings)["spec"]["containers"][0]


def start(settings: Stack) -> dict[str, str]:
    """Options of `ray start` in an engine pod, as the shell hands them over."""
    params = spec(settings)["rayClusterConfig"]["workerGroupSpecs"][0]["rayStartParams"]
    return {name: "".join(shlex.split(value)) for name, value in params.items()}


def plain_variables(settings: Stack) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in engine(settings)["env"] if "value" in variable}


def replicas_environments(settings: Stack) -> list[dict[str, str]]:
    args = yaml.safe_load(spec(settings)["serveConfigV2"])["applications"][0]["args"]
    return [args[role]["runtime_env"]["env_vars"] for role in ("prefill_config", "decode_config")]
