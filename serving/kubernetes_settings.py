"""Settings that only a stack on Kubernetes has: images, weights, KubeRay, results, monitoring."""

from typing import Literal

from pydantic import Field, model_validator

from serving.errors import ConfigError
from serving.settings_base import Quantity, Settings
from serving.versions import versions

Monitoring = Literal["none", "annotations", "prometheus-operator"]


class Images(Settings):
    """Container images, by digest or by a tag that never moves."""

    engine: str = Field(min_length=1, description="Ray, vLLM, the transfer library and this package (docker/)")
    benchmark: str = Field(min_length=1, description="AIPerf and this package")
    pull_secret: str = Field(default="", description="name of an existing image pull secret in the stack's namespace")


class NfsServer(Settings):
    """An NFS export that holds weights, or will."""

    server: str = Field(min_length=1)
    path: str = Field(pattern=r"^/")


class Weights(Settings):
    """Where a replica gets its weights.

    dummy: vLLM makes them up, as the reference post did. hub: each node downloads them itself. nfs: an export that one
    Job fills once. local: a directory that is on every node already.
    """

    mode: Literal["dummy", "nfs", "local", "hub"] = "dummy"
    revision: str = Field(default="", description="commit of the model's repository; required for nfs and hub")
    nfs: NfsServer | None = None
    size: Quantity = Field(default="1536Gi", description="nfs: capacity that the volume is declared with")
    path: str = Field(default="", description="local: the directory on the node that holds the model's files")

    @model_validator(mode="after")
    def _complete(self) -> "Weights":
        if self.mode in ("nfs", "hub") and not self.revision:
            raise ConfigError("weights.revision", f"mode {self.mode} needs a commit", "copy it from the hub")
        if (self.mode == "nfs") != (self.nfs is not None):
            raise ConfigError("weights.nfs", "goes with mode: nfs and only with it", "give server and path")
        if (self.mode == "local") != bool(self.path):
            raise ConfigError("weights.path", "goes with mode: local and only with it", "name the node's directory")
        if self.path and not self.path.startswith("/"):
            raise ConfigError("weights.path", f"{self.path!r} is not absolute")
        return self


class RayOperator(Settings):
    """KubeRay's operator: installed by this stack from a chart, or there already."""

    install: Literal["chart", "preinstalled"] = "chart"
    chart: str = Field(default="", description="a chart's name, or a local folder; empty: the pinned public chart")
    namespace: str = Field(
        default="", description="empty: the stack's own namespace; for a stack that owns nodes, `kuberay`"
    )

    def in_namespace(self, default: str) -> "RayOperator":
        """These settings with a namespace: their own, else `default`."""
        return self if self.namespace else self.model_copy(update={"namespace": default})

    @property
    def version(self) -> str:
        """The pinned version of operator and chart."""
        return versions()["kuberay"]["version"]


class Results(Settings):
    """The volume that benchmark runs are written to."""

    size: Quantity = "20Gi"
