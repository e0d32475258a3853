"""What happens to our objects when somebody edits them by hand."""

from typing import Any, cast

import pulumi

# Ours alone, whoever wrote to them last. Not NVIDIA's policy, which may be somebody else's: a conflict over it has to
# be seen. What outlives a stack, its namespace and its claim, is forced where it is made.
_OURS = {
    "kubernetes:core/v1:ConfigMap",
    "kubernetes:core/v1:Service",
    "kubernetes:batch/v1:CronJob",
    "kubernetes:apps/v1:DaemonSet",
}


def heal_by_force(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Take back fields that another field manager (`kubectl edit`) has taken over; without this `up` would refuse."""
    if args.type_ not in _OURS:
        return None
    metadata = healed_by_force(cast("dict[str, Any]", args.props.get("metadata") or {}))
    return pulumi.ResourceTransformResult(props={**args.props, "metadata": metadata}, opts=args.opts)


def healed_by_force(metadata: dict[str, Any]) -> dict[str, Any]:
    """The same for one object. The RayService is healed by this alone: a transform that changes a resource loses its
    option `replace_with` (the pinned SDK, runtime/_callbacks.py: it is not among the options it hands over).
    """
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), "pulumi.com/patchForce": "true"}}
