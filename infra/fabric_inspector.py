"""What the nodes tell of their fabric: a DaemonSet that says it, and resource pd:index:FabricFacts that reads it."""

from collections.abc import Callable
from typing import Any, cast

import pulumi

from infra.cluster.access import KubernetesAccess
from serving.fabric.discovered import Discovered
from serving.fabric_inspector import inspector
from serving.fabric_plan import FabricPlan
from serving.kubernetes_names import FABRIC_INSPECTOR
from serving.stack import Stack
from serving.versions import platform_versions

# With a node's first pull of the engine image in it: 20 GB at 1 Gb/s are 160 s, and unpacking takes longer than that.
_TIMEOUT_SECONDS = 1800


class FabricFacts(pulumi.CustomResource):
    """See infra/provider/fabric_facts.py."""

    environment: pulumi.Output[dict[str, str]]
    supplementalGroups: pulumi.Output[list[int]]  # noqa: N815  names on the wire
    devices: pulumi.Output[list[str]]
    linkGbps: pulumi.Output[float]  # noqa: N815
    nodes: pulumi.Output[list[str]]

    def __init__(self, name: str, access: KubernetesAccess, inputs: dict[str, Any], opts: pulumi.ResourceOptions):
        outputs = dict.fromkeys(
            ("environment", "supplementalGroups", "devices", "linkGbps", "nodes", "findings", "toldBy")
        )
        super().__init__("pd:index:FabricFacts", name, {**access.inputs, **inputs, **outputs}, access.after_it(opts))


def inspect_fabric(
    stack: Stack,
    plan: FabricPlan,
    stack_name: str,
    namespace: str,
    access: KubernetesAccess,
    opts: pulumi.ResourceOptions,
) -> tuple[FabricFacts | None, list[pulumi.Resource]]:
    """Register both, or nothing where nodes are not inspected. Returns the facts, and all that was registered."""
    if not plan.inspect:
        return None, []
    from pulumi_kubernetes.apps.v1 import DaemonSet

    manifest = inspector(stack, stack_name, namespace)
    pods = DaemonSet(FABRIC_INSPECTOR, metadata=manifest["metadata"], spec=manifest["spec"], opts=opts)
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


def on_fabric[Built](stack: Stack, facts: FabricFacts | None, build: Callable[[Stack], Built]) -> pulumi.Input[Built]:
    """What `build` makes of the stack once its nodes have told; at once where they are not asked."""
    if facts is None:
        return build(stack)

    def told(values: list[Any]) -> Built:
        environment, groups = values
        # On the wire it has no order, and in a pod's list of variables another order is another pod.
        in_order = dict(sorted((environment or {}).items()))
        return build(stack.on_fabric(Discovered(in_order, tuple(int(group) for group in groups or ()))))

    return pulumi.Output.all(facts.environment, facts.supplementalGroups).apply(told)
