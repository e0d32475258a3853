"""Nodes of a pool that the stand-in made, as simulated nodes of the test's control plane, if it has one."""

import os
import secrets
from typing import Any

from tools.toolchain.errors import ToolchainError

_KUBECONFIG = "PD_REHEARSAL_KUBECONFIG"


def kubeconfig_file() -> str:
    """The test control plane's kubeconfig; empty when there is none: then pools have nodes on paper only."""
    return os.environ.get(_KUBECONFIG, "")


def new_names(pool: str, count: int) -> list[str]:
    """Named as DOKS does: the pool's name and five characters."""
    return [f"{pool}-{secrets.token_hex(3)[:5]}" for _ in range(count)]


def add(names: list[str], pool: str, size: str) -> None:
    """Make them appear, and wait until they are Ready. Raises ToolchainError; then none of them is left."""
    if not (names and kubeconfig_file()):
        return
    from tools.rehearsal import nodes

    make = nodes.gpu_node if size.startswith("gpu-") else nodes.cpu_node
    try:
        nodes.add_nodes(_client(), [make(name, pool) for name in names])
    except ToolchainError:
        remove(names)
        raise


def remove(names: list[str]) -> None:
    """Take them away with the pods on them. By name: the pools of two clusters may have the same name."""
    if not (names and kubeconfig_file()):
        return
    from tools.rehearsal import nodes

    nodes.remove(_client(), names)


def _client() -> Any:
    from kubernetes import config

    return config.new_client_from_config(kubeconfig_file())
