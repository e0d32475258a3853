"""What the checks look at."""

from dataclasses import dataclass, field
from typing import NamedTuple

from infra.provider.kubernetes_api import Json
from infra.provider.resource import Properties

RAY = "ray.io/v1"
ATTACHMENTS = "k8s.cni.cncf.io/v1"
NVIDIA = "mellanox.com/v1alpha1"
PROMETHEUS = "monitoring.coreos.com/v1"


class Permission(NamedTuple):
    """One question about permissions. resource: with its subresource, `pods/log`. namespace: empty is cluster-wide."""

    group: str
    resource: str
    verb: str
    namespace: str


def operator_apart(inputs: Properties) -> bool:
    """Whether the stack installs KubeRay's operator in a namespace of its own, which goes with the stack."""
    operator = inputs["rayOperator"]
    return operator["install"] == "chart" and operator["namespace"] != inputs["namespace"]


@dataclass(frozen=True)
class Facts:
    """One look at a cluster. A list is None where the credentials do not allow to see it.

    served: API group and version -> names of its resources, for the groups that a stack may need. ray_schema:
    OpenAPI document of ray.io/v1, None when that is not served. attachments: those NetworkAttachmentDefinitions of
    the stack that are there, as namespace/name. namespace: the stack's own, if it is there; operator_namespace: the
    one that `rayOperator` names. named: what is there under the names that this stack will use (names.py).
    pull_secret: the one that images are pulled with, if it is there. own_operator: the namespace in which this
    stack itself installed KubeRay's operator, if it did. denied: what the credentials may not do, of what the stack
    will.
    """

    user: str
    version: Json
    nodes: list[Json] | None = None
    pods: list[Json] | None = None
    served: dict[str, set[str]] = field(default_factory=dict)
    ray_schema: Json | None = None
    operators: list[Json] | None = None
    own_operator: str = ""
    namespace: Json | None = None
    operator_namespace: Json | None = None
    named: dict[str, Json | None] = field(default_factory=dict)
    attachments: set[str] = field(default_factory=set)
    pull_secret: Json | None = None
    nic_policies: list[Json] | None = None
    storage_classes: list[Json] | None = None
    denied: list[Permission] = field(default_factory=list)
