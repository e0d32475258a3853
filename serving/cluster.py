"""Where the nodes come from: settings `cluster` and `nodePool`."""

from ipaddress import IPv4Network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from serving.errors import ConfigError
from serving.kubernetes_settings import RayOperator
from serving.node_profiles import PROFILES, NodeProfile
from serving.settings_base import Settings

NodeProfileName = Literal["doks", "oke-mi300x", "nvidia-network-operator", "tensorwave", "kind"]


def _address_range(text: str) -> str:
    try:
        IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"is no IPv4 range such as 203.0.113.0/24 ({error})") from None
    return text


AddressRange = Annotated[str, AfterValidator(_address_range)]


class LocalCluster(Settings):
    """A Ray head on this machine, for rehearsals."""

    provider: Literal["local"]
    port_base: int = Field(default=18000, ge=1024, le=32000, description="the first of 400 ports")


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
    region: str = "atl1"
    version: str = Field(default="", description="a DOKS version slug; empty: the newest of the pinned minor release")
    node_size: str = "gpu-mi325x8-2048gb-fabric-contracted"  # the one slug that has MI325X and fabric NICs
    system_node_size: str = "s-8vcpu-16gb-amd"
    system_nodes: int = Field(default=2, ge=1, description="CPU nodes: Ray head, operator, benchmark")
    vpc_ip_range: AddressRange = "10.100.32.0/20"
    high_availability: bool = Field(default=True, description="a control plane of several nodes")
    allow_api_from: list[AddressRange] = Field(
        default_factory=list, description="addresses that may reach the API server; empty: no firewall in front of it"
    )
    kubeconfig_expire_seconds: int = Field(default=604800, gt=0, description="DOKS's own default is 7 days")


class ExistingCluster(_KubernetesCluster):
    """A cluster somebody else made."""

    provider: Literal["existing"]
    kubeconfig: str = Field(default="", description="a file; empty: $KUBECONFIG, else ~/.kube/config")
    context: str = Field(default="", description="a context of that file; empty: its current one")
    profile_: NodeProfileName = Field(default="doks", alias="profile")
    nic_cluster_policy: dict[str, list[str]] = Field(
        default_factory=dict,
        description="make NVIDIA's NicClusterPolicy: resource name -> network interfaces of a node",
    )

    @property
    def profile_name(self) -> NodeProfileName:
        return self.profile_


class StackCluster(_KubernetesCluster):
    """The cluster of another stack of this project, which owns it."""

    provider: Literal["stack"]
    stack: str = Field(min_length=1, description="the stack that owns the nodes, for example mi325x-4node")


Cluster = Annotated[LocalCluster | DoksCluster | ExistingCluster | StackCluster, Field(discriminator="provider")]
PROVIDERS = {"local": LocalCluster, "doks": DoksCluster, "existing": ExistingCluster, "stack": StackCluster}


class NodePool(Settings):
    """What a stack owns that serves nothing. Topology stacks name that stack in `cluster.stack`."""

    nodes: int = Field(gt=0, description="nodes of 8 GPUs")


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
