"""The cluster's programs that `make toolchain-cluster` has found or built, and the files that lie beside them."""

from pathlib import Path

from tools.toolchain.items import path


def locate(name: str) -> Path:
    """The program `name`: etcd, kube-apiserver, … Raises ToolchainError when it has not been built."""
    return path(name)


def kwok_stages() -> Path:
    """kwok's own stages for nodes and pods, one YAML file of several documents."""
    return locate("kwok").with_name("stages.yaml")


def kuberay_crds() -> list[Path]:
    """KubeRay's custom resource definitions, one YAML file each."""
    return sorted((locate("ray-operator").parent / "crds").glob("*.yaml"))
