"""Settings that only a stack on Kubernetes has: weights, KubeRay, results, monitoring."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from serving.errors import ConfigError
from serving.kubernetes_grammar import IMAGE_FOLDER, AbsolutePath, AbsolutePathOrEmpty, Host, NamespaceOrEmpty
from serving.kubernetes_names import is_the_clusters_own
from serving.quantities import Memory, VolumeSize
from serving.settings_base import Settings
from serving.versions import versions

Monitoring = Literal["none", "annotations", "prometheus-operator"]
OCI = "oci://"  # what a chart in a registry of images begins with, for Helm
_CHART = r"(?=.{1,250}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"  # Helm's best practices, "Chart Names", and dots
_COMMIT = r"[0-9a-f]{40}"  # of git, as the hub shows it: a branch or a tag would be other files next week


def _a_token(token: SecretStr) -> SecretStr:
    """It becomes a header of HTTP. The error does not show it."""
    if not re.fullmatch(r"\S+", token.get_secret_value()):
        fix = "set it again: pulumi config set --secret huggingFaceToken"
        raise ConfigError("huggingFaceToken", "is empty or has white space", fix)
    return token


def _a_chart(chart: str) -> str:
    """By its grammar; whether it is there is looked at when the stack is deployed (infra/operator_chart.py)."""
    if chart.startswith(OCI):
        if not re.fullmatch(IMAGE_FOLDER, chart.removeprefix(OCI)) or "/" not in chart.removeprefix(OCI):
            raise ValueError(
                "has to be oci://REGISTRY/REPOSITORY/CHART in lower case, without a tag: its version is the pinned one"
            )
    elif "://" in chart or not (not chart or _is_path(chart) or re.fullmatch(_CHART, chart)):
        raise ValueError(
            "has to be a chart's name in KubeRay's public repository (lower-case letters, digits, - and .), "
            "oci://REGISTRY/REPOSITORY/CHART, or a folder or .tgz file such as ./kuberay-operator"
        )
    return chart


def _is_path(chart: str) -> bool:
    return chart.isprintable() and ("/" in chart or chart.startswith(".") or chart.endswith(".tgz"))


HubToken = Annotated[SecretStr, AfterValidator(_a_token)]


class Security(Settings):
    """What engine containers may do on their nodes."""

    privileged: bool = Field(
        default=False, description="a fallback, for nodes on which device plugins and capabilities are not enough"
    )


class NfsServer(Settings):
    """An NFS export that holds weights, or will."""

    server: Host
    path: AbsolutePath


class Weights(Settings):
    """Where a replica gets its weights.

    dummy: vLLM makes them up, as the reference post did. hub: each node downloads them itself. nfs: an export that one
    Job fills once. local: a directory that is on every node already.
    """

    mode: Literal["dummy", "nfs", "local", "hub"] = "dummy"
    revision: str = Field(default="", description="commit of the model's repository; required for nfs and hub")
    nfs: NfsServer | None = None
    # 1.5 TiB: the two models that ship take 926 GB, and a second commit of the larger one 689 GB more. Nothing enforces
    # it on NFS; the export's own size does.
    size: Memory = Field(default="1536Gi", description="nfs: capacity that the volume is declared with")
    path: AbsolutePathOrEmpty = Field(
        default="", description="local: the directory on the node that holds the model's files"
    )

    @model_validator(mode="after")
    def _complete(self) -> "Weights":
        if self.mode in ("nfs", "hub") and not self.revision:
            raise ConfigError("weights.revision", f"mode {self.mode} needs a commit", "copy it from the hub")
        if self.revision and not re.fullmatch(_COMMIT, self.revision):
            fix = "copy all 40 characters of one from the hub"
            raise ConfigError("weights.revision", f"{self.revision!r} is no commit", fix)
        if self.mode == "local" and self.revision:
            raise ConfigError("weights.revision", "the directory of mode: local is what it is", "remove it")
        if self.mode != "nfs" and "size" in self.model_fields_set:
            raise ConfigError("weights.size", "goes with mode: nfs and only with it", "remove it")
        if (self.mode == "nfs") != (self.nfs is not None):
            raise ConfigError("weights.nfs", "goes with mode: nfs and only with it", "give server and path")
        if (self.mode == "local") != bool(self.path):
            raise ConfigError("weights.path", "goes with mode: local and only with it", "name the node's directory")
        return self


class RayOperator(Settings):
    """KubeRay's operator: installed by this stack from a chart, or there already."""

    install: Literal["chart", "preinstalled"] = "chart"
    chart: Annotated[str, AfterValidator(_a_chart)] = Field(
        default="", description="a chart's name, oci://, or a local folder or .tgz; empty: the pinned public chart"
    )
    namespace: NamespaceOrEmpty = Field(
        default="",
        description="empty: the stack's own namespace; for a stack that owns nodes, `kuberay`",
    )

    @model_validator(mode="after")
    def _not_the_clusters_own(self) -> "RayOperator":
        if self.install == "chart" and is_the_clusters_own(self.namespace):
            raise ConfigError("rayOperator.namespace", f"{self.namespace} is the cluster's own", "choose another one")
        return self

    @model_validator(mode="after")
    def _installed(self) -> "RayOperator":
        for name in sorted({"chart", "namespace"} & self.model_fields_set):
            if self.install == "preinstalled":
                raise ConfigError(f"rayOperator.{name}", "goes with install: chart and only with it", "remove it")
        return self

    def in_namespace(self, default: str) -> "RayOperator":
        """These settings with a namespace: their own, else `default`."""
        return self if self.namespace else self.model_copy(update={"namespace": default})

    @property
    def version(self) -> str:
        """The pinned version of operator and chart."""
        return versions()["kuberay"]["version"]


class Results(Settings):
    """The volume that benchmark runs are written to."""

    # Ten runs of the longest scenario. One is 2.1 GB, reckoned from a rehearsal's files (2.7 KB for an answer of 32
    # tokens, 0.8 KB for a prompt of 256) for qwen-16k-4k: 5,300 requests of 16,384 and 4,096 tokens.
    size: VolumeSize = "20Gi"
