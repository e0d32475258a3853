"""Where the nodes come from: settings `cluster` and `nodePool`."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from serving.address_ranges import AddressRange, VpcRange
from serving.errors import ConfigError
from serving.kubernetes_grammar import Interface, RdmaResource
from serving.kubernetes_settings import RayOperator
from serving.node_profiles import PROFILES, NodeProfile
from serving.settings_base import Count, Settings

_SHORTEST_KUBECONFIG = 3600  # readyTimeoutSeconds' default, so that `pulumi up` ends before its own credentials do
NodeProfileName = Literal["doks", "oke-mi300x", "nvidia-network-operator", "tensorwave", "kind"]


def _not_empty(names: list[str]) -> list[str]:
    if not names:
        raise ValueError("is empty: name the network interfaces, or remove the resource")
    return names


def _slug(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", text):
        raise ValueError("has to be one of DigitalOcean's slugs, such as atl1 or s-8vcpu-16gb-amd")
    return text


def _stack_name(text: str) -> str:
    """Pulumi's own grammar (its pkg/tokens, and 100 characters), which it tells without saying whose name it is."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", text):
        raise ValueError(
            "has to be a stack's name, without organization and project: at most 100 letters, digits, -, _ and ."
        )
    return text


def _default_or_an_hour(seconds: int) -> int:
    """0 is DOKS's own default (the pinned SDK, KubernetesCluster.kubeconfig_expire_seconds)."""
    if 0 < seconds < _SHORTEST_KUBECONFIG:
        raise ValueError(
            f"has to be 0 (DOKS's 7 days) or at least {_SHORTEST_KUBECONFIG}: an update must not outlast it"
        )
    return seconds


Slug = Annotated[str, AfterValidator(_slug)]


class LocalCluster(Settings):
    """A Ray head on this machine, for rehearsals."""

    provider: Literal["local"]
    port_base: Count = Field(default=18000, ge=1024, le=32000, description="the first of 400 ports")


class _KubernetesCluster(Settings):
    nodes: dict[str, Any] = Field(
        default_factory=dict, description="keys of serving/node_profiles.py that differ from the profile"
    )

    @property
    def profile_name(self) -> NodeProfileName:
        return "doks"

    @property
    def profile(self) -> NodeProfile:
        """The nodes as they are: the profile with the keys of `nodes` on top. Raises ConfigError."""
        return PROFILES[self.profile_name].with_changes(self.nodes)

    @model_validator(mode="after")
    def _profile_holds(self) -> "_KubernetesCluster":
        _ = self.profile
        return self


class DoksCluster(_KubernetesCluster):
    """A DigitalOcean Kubernetes cluster that this stack makes and owns."""

    provider: Literal["doks"]
    # Regions in which fabric slugs were seen: atl1, nyc2, tor1 (DigitalOcean's GPU pages, read 2026-11).
    region: Slug = "atl1"
    version: str = Field(default="", description="a DOKS version slug; empty: the newest of the pinned minor release")
    node_size: Slug = "gpu-mi325x8-2048gb-fabric-contracted"  # the one slug that has MI325X and fabric NICs
    system_node_size: Slug = "s-8vcpu-16gb-amd"
    system_nodes: Count = Field(default=2, ge=1, description="CPU nodes: Ray head, operator, benchmark")
    vpc_ip_range: VpcRange = "10.100.32.0/20"
    high_availability: bool = Field(default=True, description="a control plane of several nodes")
    allow_api_from: list[AddressRange] = Field(
        default_factory=list, description="addresses that may reach the API server; empty: no firewall in front of it"
    )
    kubeconfig_expire_seconds: Annotated[Count, AfterValidator(_default_or_an_hour)] = Field(
        default=604800, ge=0, description="0: DOKS's own default, 7 days"
    )


class ExistingCluster(_KubernetesCluster):
    """A cluster somebody else made."""

    provider: Literal["existing"]
    kubeconfig: str = Field(default="", description="a file; empty: $KUBECONFIG, else ~/.kube/config")
    context: str = Field(default="", description="a context of that file; empty: its current one at the first update")
    profile_: NodeProfileName = Field(default="doks", alias="profile")
    nic_cluster_policy: dict[RdmaResource, Annotated[list[Interface], AfterValidator(_not_empty)]] = Field(
        default_factory=dict,
        description="make NVIDIA's NicClusterPolicy: resource name -> network interfaces of a node",
    )

    @property
    def profile_name(self) -> NodeProfileName:
        return self.profile_


class StackCluster(_KubernetesCluster):
    """The cluster of another stack of this project, which owns it."""

    provider: Literal["stack"]
    stack: Annotated[str, AfterValidator(_stack_name)] = Field(
        min_length=1, description="the stack that owns the nodes, for example mi325x-4node"
    )


Cluster = Annotated[LocalCluster | DoksCluster | ExistingCluster | StackCluster, Field(discriminator="provider")]
PROVIDERS = {"local": LocalCluster, "doks": DoksCluster, "existing": ExistingCluster, "stack": StackCluster}


class NodePool(Settings):
    """What a stack owns that serves nothing. Topology stacks name that stack in `cluster.stack`."""

    nodes: Count = Field(gt=0, description="nodes of 8 GPUs")


class NodePoolStack(Settings):
    """The settings of such a stack."""

    node_pool: NodePool
    cluster: DoksCluster
    ray_operator: RayOperator = Field(default_factory=RayOperator)

    @model_validator(mode="before")
    @classmethod
    def _only_nodes(cls, values: Any) -> Any:
        """Say what is wrong with a pool that also wants to serve, instead of `unknown key`."""
        if isinstance(values, dict) and (serving := sorted({"model", "topology", "scenario"} & values.keys())):
            raise ConfigError(serving[0], "a stack with nodePool serves nothing", "put it into a stack of its own")
        return values

    @model_validator(mode="after")
    def _no_engines(self) -> "NodePoolStack":
        for key in sorted(self.cluster.nodes.keys() - {"systemNodeSelector"}):
            problem = "a stack with nodePool starts no Ray pod"
            raise ConfigError(f"cluster.nodes.{key}", problem, "set it in the stacks that serve")
        return self
