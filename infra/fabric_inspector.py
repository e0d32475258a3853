"""What the nodes tell of their fabric: a DaemonSet that says it, and resource pd:index:FabricFacts that reads it."""

from typing import Any, cast

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.fabric_facts import FabricFacts
from infra.late import Late
from serving.fabric_inspector import inspector_metadata, inspector_spec
from serving.fabric_plan import FabricPlan
from serving.kubernetes_names import FABRIC_INSPECTOR
from serving.stack import Stack
from serving.versions import platform_versions

# With a node's first pull of the engine image in it: 20 GB at 1 Gb/s are 160 s, and unpacking takes longer than that.
_TIMEOUT_SECONDS = 1800


def inspect_fabric(
    stack: Stack,
    plan: FabricPlan,
    stack_name: str,
    namespace: str,
    access: KubernetesAccess,
    late: Late,
    opts: pulumi.ResourceOptions,
) -> tuple[FabricFacts | None, list[pulumi.Resource]]:
    """Register both, or nothing where nodes are not inspected. Returns the facts, and all that was registered."""
    if not plan.inspect:
        return None, []
    from pulumi_kubernetes.apps.v1 import DaemonSet

    pods = DaemonSet(
        FABRIC_INSPECTOR,
        metadata=inspector_metadata(stack_name, namespace),  # pyright: ignore[reportArgumentType]
        spec=late.of(stack, lambda whole: inspector_spec(whole, stack_name)),  # pyright: ignore[reportArgumentType]
        opts=opts,
    )
    live = cast("pulumi.Output[dict[str, Any]]", pods.metadata)
    inputs = {
        "namespace": namespace,
        "stack": stack_name,
        "daemonSet": FABRIC_INSPECTOR,
        # Absent in a preview of what does not exist yet.
        "uid": live.apply(lambda metadata: metadata.get("uid", "")),
        "generation": live.apply(lambda metadata: metadata.get("generation", 0)),
        "given": stack.profile.environment,
        "ucx": platform_versions(stack.platform).get("ucx", ""),
        "gate": plan.gate,
        "timeoutSeconds": _TIMEOUT_SECONDS,
    }
    facts = FabricFacts("fabric-facts", access, inputs, pulumi.ResourceOptions(depends_on=[pods]))
    return facts, [pods, facts]
