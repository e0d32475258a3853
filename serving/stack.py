"""The settings of a stack, validated. The same model reads Pulumi's config and a stack file on disk."""

import re
from typing import Any, Literal

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator

from serving.cluster import PROVIDERS, Cluster, ExistingCluster, LocalCluster, NodePoolStack, StackCluster
from serving.engine import EngineSettings
from serving.errors import ConfigError
from serving.fabric.discovered import NOTHING, Discovered
from serving.fabric_settings import Fabric
from serving.image_arguments import engine_image
from serving.images import Images
from serving.kubernetes_grammar import NamespaceOrEmpty
from serving.kubernetes_names import is_the_clusters_own
from serving.kubernetes_settings import HubToken, Monitoring, RayOperator, Results, Security, Weights
from serving.local_ports import LocalPorts
from serving.model_directory import check_model_directory
from serving.models import Model, model
from serving.node_check import check_nodes
from serving.node_profiles import NodeProfile
from serving.platforms import PLATFORMS, Platform, PlatformName
from serving.ray_connection import RayConnection
from serving.refusals import in_words, where
from serving.rehearsal_directory import rehearsal_model_directory
from serving.settings_base import Count, Settings
from serving.topology import Topology, parse_topology

Target = Literal["kubernetes", "ray"]
_KUBERNETES_ONLY = {
    *("namespace", "images", "weights", "hugging_face_token", "ray_operator", "results", "monitoring", "security"),
    "fabric",
}
_MOST_LOCAL_REPLICAS = 6  # what the CPUs that a local Ray head declares are enough for (infra/cluster/local.py)


class Stack(Settings):
    """One deployment: which model, arranged how, on what, measured with which scenario."""

    model: str = Field(description="key of serving/models.py")
    topology: str = Field(description="2p1d, or agg-3")
    platform: PlatformName = "rocm"
    target: Target = "kubernetes"
    scenario: str = Field(description="key of benchmarks/scenarios.yaml")
    cluster: Cluster | None = None
    ray: RayConnection | None = None
    engine: EngineSettings = Field(default_factory=EngineSettings)
    model_source: str = Field(default="", description="directory or id of the weights; empty: the model's repository")
    ingress_replicas: Count | None = Field(default=None, gt=0, le=1000)
    # At most a day. The larger model's weights take 92 min at the slowest rate that is no fault (weights.py).
    ready_timeout_seconds: Count = Field(
        default=3600, gt=0, le=86400, description="how long the application may take to serve"
    )
    # Only on Kubernetes.
    namespace: NamespaceOrEmpty = Field(default="", description="empty: the stack's name")
    images: Images | None = None
    weights: Weights = Field(default_factory=Weights)
    hugging_face_token: HubToken | None = Field(default=None, description="set with `pulumi config set --secret`")
    ray_operator: RayOperator = Field(default_factory=RayOperator)
    results: Results = Field(default_factory=Results)
    monitoring: Monitoring = "none"
    security: Security = Field(default_factory=Security)
    fabric: Fabric = Field(default_factory=Fabric)
    waive: dict[str, str] = Field(
        default_factory=dict, description="guards (docs/reference/guards.md) that may find something: guard -> reason"
    )
    _discovered: Discovered = PrivateAttr(default=NOTHING)

    @model_validator(mode="before")
    @classmethod
    def _default_model_source(cls, values: Any) -> Any:
        if isinstance(values, dict) and not values.get("modelSource") and isinstance(values.get("model"), str):
            values = {**values, "modelSource": model(values["model"]).repository or str(rehearsal_model_directory())}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> "Stack":
        parse_topology(self.topology)
        local = isinstance(self.cluster, LocalCluster)
        if self.target == "ray":
            if (self.cluster is not None) == (self.ray is not None) or (self.cluster and not local):
                raise ConfigError("target", "ray needs exactly one of cluster.provider: local and ray.address")
        elif self.cluster is None or local:
            raise ConfigError("cluster", "target kubernetes needs cluster.provider doks, existing or stack")
        elif self.ray is not None:
            raise ConfigError("ray", "only target: ray takes it", "remove it or set target: ray")
        if is_the_clusters_own(self.namespace):
            raise ConfigError("namespace", f"{self.namespace} is the cluster's own", "choose one for this stack")
        if isinstance(self.cluster, StackCluster) and "ray_operator" in self.model_fields_set:
            raise ConfigError(
                "rayOperator", f"is {self.cluster.stack}'s, which owns the nodes", f"set it in {self.cluster.stack}"
            )
        if self.target == "ray":
            for name in sorted(_KUBERNETES_ONLY & self.model_fields_set):
                key = type(self).model_fields[name].alias or name
                raise ConfigError(key, "only target: kubernetes takes it", "remove it")
        if local and self.topology_.replicas > _MOST_LOCAL_REPLICAS:
            raise ConfigError(
                "topology", f"{self.topology} is more than {_MOST_LOCAL_REPLICAS} replicas on one machine"
            )
        if local and self.platform != "cpu":
            raise ConfigError("platform", "a local cluster has CPU replicas only", "set platform: cpu")
        if self.model_.repository is None and self.platform != "cpu":
            raise ConfigError("platform", f"{self.model} rehearses on a CPU", "set platform: cpu")
        if self.model_source.startswith("/"):
            check_model_directory(self.model_source, in_pods=self.target == "kubernetes")
        if self.target == "kubernetes" and self.model_.repository is None and self.weights.mode != "local":
            raise ConfigError(
                "weights.mode", f"{self.model} is a directory and on no hub", "set local, and weights.path on the nodes"
            )
        if self.weights.mode in ("nfs", "hub") and not self.is_on_hub:
            raise ConfigError(
                "weights.mode",
                f"{self.weights.mode} downloads from the hub, and {self.model_source!r} is no repository of it",
                "set modelSource to owner/name, or weights.mode to local or dummy",
            )
        for role in EngineSettings.model_fields:
            if role not in ("all", *self.topology_.roles) and getattr(self.engine, role).given():
                raise ConfigError(f"engine.{role}", f"topology {self.topology} has no {role} replica", "remove it")
            limit = getattr(self.engine, role).max_model_len
            if limit and limit > self.model_.max_model_len:
                raise ConfigError(
                    f"engine.{role}.max_model_len", f"{limit} is more than {self.model}'s {self.model_.max_model_len}"
                )
        if self.images is not None and self.images.build is not None and not engine_image(self.platform):
            raise ConfigError(
                "images.build", f"docker/ has no engine image for platform {self.platform}", "give images.engine"
            )
        if self.target == "kubernetes":
            check_nodes(self.platform_, self.profile)
        return self

    @property
    def model_(self) -> Model:
        return model(self.model)

    @property
    def is_on_hub(self) -> bool:
        """Whether `model_source` is a repository of the hub, owner/name, and no directory."""
        return bool(re.fullmatch(r"[\w.-]+/[\w.-]+", self.model_source))

    @property
    def platform_(self) -> Platform:
        return PLATFORMS[self.platform]

    @property
    def topology_(self) -> Topology:
        return parse_topology(self.topology)

    @property
    def gpus(self) -> int:
        return self.topology_.replicas * self.platform_.gpus_per_replica

    @property
    def local_ports(self) -> "LocalPorts | None":
        """Ports of a local Ray head, or None when the cluster is not ours to number."""
        return LocalPorts(self.cluster.port_base) if isinstance(self.cluster, LocalCluster) else None

    @property
    def required_images(self) -> Images:
        """The images of a stack on Kubernetes, built if they have to be (`with_images`). Raises ConfigError.

        No public ones exist that could be the default.
        """
        fix = "set images.engine and images.benchmark"
        if self.images is None:
            raise ConfigError("images", "is required on Kubernetes", f"{fix}, or images.build")
        if not self.images.engine:
            raise ConfigError("images.build", "is built by `pulumi up`, and not known before", fix)
        return self.images

    def with_images(self, engine: str, benchmark: str) -> "Stack":
        """This stack with the references of the images that were built for it."""
        assert self.images is not None  # noqa: S101
        return self.model_copy(update={"images": self.images.built(engine, benchmark)})

    @property
    def profile(self) -> NodeProfile:
        """The nodes that a stack on Kubernetes runs on."""
        assert self.cluster is not None  # noqa: S101  validated: target kubernetes
        assert not isinstance(self.cluster, LocalCluster)  # noqa: S101
        return self.cluster.profile

    @property
    def installs_operator(self) -> bool:
        """Whether KubeRay's operator is this stack's. On a shared pool the stack that owns it has one for all."""
        return self.ray_operator.install == "chart" and not isinstance(self.cluster, StackCluster)

    @property
    def nic_cluster_policy(self) -> dict[str, list[str]]:
        """NVIDIA's NicClusterPolicy that this stack makes: resource name -> network interfaces; empty for none."""
        return self.cluster.nic_cluster_policy if isinstance(self.cluster, ExistingCluster) else {}

    @property
    def environment(self) -> dict[str, str]:
        """Variables of every engine process: the platform's, over them those the nodes told, over all those given."""
        own = self.profile.environment if self.target == "kubernetes" else {}
        return {**self.platform_.environment, **self._discovered.environment, **own}

    @property
    def supplemental_groups(self) -> tuple[int, ...]:
        """Groups that a process in an engine pod is in besides its own: the one given, else those the nodes told."""
        given = self.profile.render_group
        return self._discovered.supplemental_groups if given is None else (given,)

    def on_fabric(self, discovered: Discovered) -> "Stack":
        """This stack on nodes that told this. What the stack file or the node profile gives wins over it."""
        copy = self.model_copy()
        copy._discovered = discovered
        return copy

    @property
    def accelerator_type(self) -> str:
        """Ray's name of the GPU: replicas ask for it, and engine pods announce it. Empty: neither."""
        own = self.profile.accelerator_type if self.target == "kubernetes" else ""
        return own or self.platform_.resources.get("accelerator_type", "")


def parse_stack(values: dict[str, Any]) -> Stack:
    """Settings of a serving stack as read -> Stack. Raises ConfigError, one line, naming the key that is wrong."""
    return _parse(Stack, values)


def parse_settings(values: dict[str, Any]) -> Stack | NodePoolStack:
    """Settings of any stack; one with `nodePool` owns nodes and serves nothing. Raises ConfigError."""
    return _parse(NodePoolStack, values) if "nodePool" in values else _parse(Stack, values)


def _parse[Model: BaseModel](settings: type[Model], values: dict[str, Any]) -> Model:
    try:
        return settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        location = list(first["loc"])
        if location[:1] == ["cluster"] and location[1:2] and location[1] in PROVIDERS:
            del location[1]  # in a union pydantic also names the member, by its tag: not a key of the stack file
        key = where(tuple(location)) or "config"
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, ConfigError):
            raise cause from None
        if first["type"] == "extra_forbidden":
            raise ConfigError(key, "unknown key", f"known here: {_known_keys(settings, first['loc'])}") from None
        if first["type"] == "missing":
            raise ConfigError(key, "is required") from None
        if first["type"].startswith("union_tag"):
            problem = (
                "is required"
                if first["type"].endswith("not_found")
                else f"unknown: {first.get('ctx', {}).get('tag')!r}"
            )
            raise ConfigError(f"{key}.provider", problem, f"one of: {', '.join(PROVIDERS)}") from None
        if first["type"] in ("model_type", "model_attributes_type"):
            raise ConfigError(key, f"is an object, got {first['input']!r}", "write its keys below it") from None
        raise ConfigError(key, in_words(first)) from None


def _known_keys(settings: Any, location: tuple[int | str, ...]) -> str:
    """The keys that could have stood where an unknown one did."""
    for before, part in zip(("", *location), location[:-1], strict=False):
        if before == "cluster" and part in PROVIDERS:
            settings = PROVIDERS[str(part)]
            continue
        field = next((f for n, f in settings.model_fields.items() if part in (n, f.alias)), None)
        candidates = getattr(field.annotation, "__args__", (field.annotation,)) if field else ()
        settings = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), settings)
    return ", ".join(f.alias or n for n, f in settings.model_fields.items())
