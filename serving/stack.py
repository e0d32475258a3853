"""The settings of a stack, validated. The same model reads Pulumi's config and a stack file on disk."""

import hashlib
import os
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from serving.engine import EngineSettings
from serving.errors import ConfigError
from serving.models import Model, model
from serving.platforms import PLATFORMS, Platform, PlatformName
from serving.topology import Topology, parse_topology

Target = Literal["kubernetes", "ray"]
_MOST_LOCAL_REPLICAS = 6  # what the CPUs that a local Ray head declares are enough for (infra/cluster/local.py)


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


class Cluster(_Settings):
    """Where the nodes come from. `local` starts a Ray head on this machine."""

    provider: Literal["doks", "existing", "stack", "local"]
    stack: str | None = Field(default=None, description="provider `stack`: the stack that owns the node pool")
    port_base: int = Field(default=18000, ge=1024, le=32000, description="provider `local`: the first of 400 ports")


class RayConnection(_Settings):
    """An existing Ray cluster, reached over its dashboard's REST API."""

    address: str = Field(pattern=r"^https?://", description="dashboard URL, for example https://ray.example.com:8265")
    token_file: str | None = Field(default=None, description="file with Ray's authentication token")
    ca_file: str | None = Field(default=None, description="CA bundle that signs the dashboard's certificate")
    headers_file: str | None = Field(default=None, description="YAML file of HTTP headers for a proxy in front of Ray")
    service_url: str = Field(pattern=r"^https?://", description="URL of the cluster's Serve proxy for clients")
    metrics_urls: list[str] = Field(default_factory=list, description="Prometheus endpoints of the cluster's nodes")

    @model_validator(mode="after")
    def _addresses(self) -> "RayConnection":
        for key, url in (("ray.address", self.address), ("ray.serviceUrl", self.service_url)):
            try:
                parts = urlsplit(url)
                good = bool(parts.hostname) and (parts.port or 1) > 0
            except ValueError:
                parts, good = None, False
            if not good:
                raise ConfigError(key, "is not a URL with a host and a port from 1 to 65535")
            if parts and parts.username is not None:
                raise ConfigError(key, "must not hold a password", "use ray.tokenFile or ray.headersFile")
        return self


class Stack(_Settings):
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
    ingress_replicas: int | None = Field(default=None, gt=0)
    ready_timeout_seconds: int = Field(default=3600, gt=0, description="how long the application may take to serve")

    @model_validator(mode="before")
    @classmethod
    def _default_model_source(cls, values: Any) -> Any:
        if isinstance(values, dict) and not values.get("modelSource") and isinstance(values.get("model"), str):
            values = {**values, "modelSource": model(values["model"]).repository or str(rehearsal_model_directory())}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> "Stack":
        parse_topology(self.topology)
        local = self.cluster is not None and self.cluster.provider == "local"
        if self.target == "ray":
            if (self.cluster is not None) == (self.ray is not None) or (self.cluster and not local):
                raise ConfigError("target", "ray needs exactly one of cluster.provider: local and ray.address")
        elif self.cluster is None or local:
            raise ConfigError("cluster", "target kubernetes needs cluster.provider doks, existing or stack")
        elif self.ray is not None:
            raise ConfigError("ray", "only target: ray takes it", "remove it or set target: ray")
        if self.cluster and (self.cluster.provider == "stack") != (self.cluster.stack is not None):
            raise ConfigError("cluster.stack", "goes with provider: stack and only with it")
        if local and self.topology_.replicas > _MOST_LOCAL_REPLICAS:
            raise ConfigError(
                "topology", f"{self.topology} is more than {_MOST_LOCAL_REPLICAS} replicas on one machine"
            )
        if local and self.platform != "cpu":
            raise ConfigError("platform", "a local cluster has CPU replicas only", "set platform: cpu")
        if self.model_.repository is None and self.platform != "cpu":
            raise ConfigError("platform", f"{self.model} rehearses on a CPU", "set platform: cpu")
        for role in EngineSettings.model_fields:
            if role not in ("all", *self.topology_.roles) and getattr(self.engine, role).given():
                raise ConfigError(f"engine.{role}", f"topology {self.topology} has no {role} replica", "remove it")
            limit = getattr(self.engine, role).max_model_len
            if limit and limit > self.model_.max_model_len:
                raise ConfigError(
                    f"engine.{role}.max_model_len", f"{limit} is more than {self.model}'s {self.model_.max_model_len}"
                )
        return self

    @property
    def model_(self) -> Model:
        return model(self.model)

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
        if self.cluster is None or self.cluster.provider != "local":
            return None
        return LocalPorts(self.cluster.port_base)


class LocalPorts:
    """Which loopback port does what, counted from cluster.portBase."""

    def __init__(self, base: int) -> None:
        self.http, self.dashboard, self.metrics, self.gcs = base, base + 1, base + 2, base + 3
        self.node_manager, self.object_manager = base + 4, base + 5
        self.dashboard_agent, self.runtime_env_agent, self.dashboard_grpc = base + 6, base + 7, base + 8
        self.ray_client = base + 9
        # Metrics of Ray's autoscaler and dashboard, which else meet on fixed ports with those of another head.
        self.autoscaler_metrics, self.dashboard_metrics = base + 10, base + 11
        self.side_channel = base + 100  # 100 ports for prefill or aggregated replicas, then 100 for decode
        self.first_worker, self.last_worker = base + 300, base + 399  # Ray's own worker processes

    def listeners(self) -> dict[str, int]:
        """The ports that Ray itself listens on, which must be free before it starts: name -> port."""
        ranges = ("side_channel", "first_worker", "last_worker")
        return {name: port for name, port in vars(self).items() if name not in ranges}


def parse_stack(values: dict[str, Any]) -> Stack:
    """Settings as read -> Stack. Raises ConfigError, one line, naming the key that is wrong."""
    try:
        return Stack.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "config"
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, ConfigError):
            raise cause from None
        if first["type"] == "extra_forbidden":
            raise ConfigError(key, "unknown key", f"known here: {_known_keys(first['loc'])}") from None
        if first["type"] == "missing":
            raise ConfigError(key, "is required") from None
        if first["type"] == "model_type":
            raise ConfigError(key, f"is an object, got {first['input']!r}", "write its keys below it") from None
        shown = repr(first["input"])
        raise ConfigError(key, f"{first['msg']}, got {shown if len(shown) < 200 else shown[:200] + ' ...'}") from None


def _known_keys(location: tuple[int | str, ...]) -> str:
    """The keys that could have stood where an unknown one did."""
    settings: Any = Stack
    for part in location[:-1]:
        field = next((f for n, f in settings.model_fields.items() if part in (n, f.alias)), None)
        candidates = getattr(field.annotation, "__args__", (field.annotation,)) if field else ()
        settings = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), Stack)
    return ", ".join(f.alias or n for n, f in settings.model_fields.items())


def rehearsal_model_directory() -> Path:
    """Where this machine keeps the rehearsal model, named by the content it is made from."""
    cache = Path(os.environ.get("PD_MI325X_CACHE") or Path.home() / ".cache" / "pd-mi325x").expanduser().absolute()
    root = Path(__file__).parent
    content = b"".join((root / name).read_bytes() for name in ("rehearsal_model.py", "models.py"))
    content += (root.parent / "LICENSE").read_bytes()
    return cache / "models" / f"rehearsal-{hashlib.sha256(content).hexdigest()[:12]}"
