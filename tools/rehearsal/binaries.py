"""Files that lie beside the cluster's programs. Raises ToolchainError when a program has not been built."""

from pathlib import Path

from tools.toolchain.items import path


def kwok_stages() -> Path:
    """kwok's own stages for nodes and pods, one YAML file of several documents."""
    return path("kwok").with_name("stages.yaml")


def kuberay_crds() -> list[Path]:
    """KubeRay's custom resource definitions, one YAML file each."""
    return sorted((path("ray-operator").parent / "crds").glob("*.yaml"))
