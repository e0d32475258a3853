"""Kubernetes nodes with GPUs and RDMA NICs as the places that have them present them (node_profiles.yaml)."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, ValidationError

from serving.engine_environment import Variable, check_environment
from serving.errors import ConfigError
from serving.kubernetes_grammar import (
    DnsName,
    DnsNameOrEmpty,
    ExtendedResource,
    ExtendedResourceOrEmpty,
    Interface,
    LabelKey,
    LabelValue,
)
from serving.quantities import Cpus, Memory
from serving.refusals import in_words, where
from serving.settings_base import Count, Settings
from serving.tolerations import Toleration

NetworkMode = Literal["host", "multus", "sriov", "pod"]
_LARGEST_GROUP = 2**31 - 1  # kubernetes pkg/apis/core/validation: IsValidGroupID


def _a_word(text: str) -> str:
    """It becomes one of a shell's command."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]*", text):
        raise ValueError("has to be Ray's name of the GPU: letters, digits, -, _ and .")
    return text


class NodeProfile(Settings):
    """One kind of node. Quantities are in the words of the Kubernetes API (`1062Gi`, `132`).

    gpu_resource: the device plugin's resource name; empty on nodes without GPUs. accelerator_type: Ray's name of the
    GPU, if it is not the platform's. environment: of every engine process, over the platform's. rdma_resources: what an
    engine pod asks for, name -> count. network: how an engine pod reaches its NICs; `pod` where there are none.
    attachments: NetworkAttachmentDefinitions by name, `multus` and `sriov` only. host_devices: for `multus`, the
    attachments this stack makes, name -> network device of the node. render_group: group id of /dev/dri/renderD* on the
    node, if the container must join it. storage_class: for the volume of results; empty takes the cluster's default.
    """

    gpu_resource: ExtendedResourceOrEmpty = "amd.com/gpu"
    gpus_per_node: Count = Field(default=8, ge=0)
    accelerator_type: Annotated[str, AfterValidator(_a_word)] = ""
    environment: dict[str, Variable] = Field(default_factory=dict)
    rdma_resources: dict[ExtendedResource, Annotated[Count, Field(gt=0)]] = Field(default_factory=dict)
    network: NetworkMode = "host"
    attachments: list[str] = Field(default_factory=list)
    host_devices: dict[DnsName, Interface] = Field(default_factory=dict)
    tolerations: list[Toleration] = Field(default_factory=list)
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    system_node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    render_group: Count | None = Field(default=None, ge=0, le=_LARGEST_GROUP)
    storage_class: DnsNameOrEmpty = ""
    engine_cpu: Cpus = "132"
    engine_memory: Memory = "1062Gi"
    head_cpu: Cpus = "4"
    head_memory: Memory = "10Gi"

    def with_changes(self, changes: dict[str, Any]) -> "NodeProfile":
        """This profile with some keys (as the stack file writes them) replaced. Raises ConfigError naming the key.

        Variables of `environment` are added to the profile's: who names a NIC does not mean to lose the traffic class.
        """
        own = changes.get("environment")
        added = {"environment": {**self.environment, **own}} if isinstance(own, dict) else {}
        try:
            profile = NodeProfile.model_validate({**self.model_dump(by_alias=True), **changes, **added})
        except ValidationError as error:
            first = error.errors()[0]
            key = where(("cluster.nodes", *first["loc"]))
            if first["type"] == "extra_forbidden":
                inside = Toleration if first["loc"][0] == "tolerations" else NodeProfile
                known = ", ".join(field.alias or name for name, field in inside.model_fields.items())
                raise ConfigError(key, "unknown key", f"known here: {known}") from None
            raise ConfigError(key, in_words(first)) from None
        profile.check_network()
        profile.check_devices()
        check_environment(profile.environment)
        return profile

    def check_network(self) -> None:
        """The modes exclude each other. Raises ConfigError."""
        wanted = bool(self.attachments or self.host_devices)
        if self.network in ("host", "pod") and wanted:
            # Multus skips pods with hostNetwork without a word (multus-cni #1091).
            raise ConfigError(
                "cluster.nodes.network",
                f"{self.network} ignores network attachments",
                "set multus or sriov, or remove them",
            )
        if self.network == "pod" and self.rdma_resources:
            raise ConfigError("cluster.nodes.network", "pod has no RDMA NICs", "set host, or rdmaResources: {}")
        if self.network in ("multus", "sriov") and not wanted:
            raise ConfigError(
                "cluster.nodes.attachments", f"network {self.network} needs the attachments of a pod", "name them"
            )
        if self.network == "sriov" and self.host_devices:
            raise ConfigError("cluster.nodes.hostDevices", "goes with network: multus", "use attachments with sriov")

    def check_devices(self) -> None:
        """GPUs are counted once. Raises ConfigError."""
        if self.gpu_resource in self.rdma_resources:
            key = f"cluster.nodes.rdmaResources.{self.gpu_resource}"
            raise ConfigError(key, "is gpuResource, which gpusPerNode counts", "remove it here")


PROFILES: dict[str, NodeProfile] = {
    name: NodeProfile.model_validate(values)
    for name, values in yaml.safe_load(Path(__file__).with_name("node_profiles.yaml").read_text()).items()
}
