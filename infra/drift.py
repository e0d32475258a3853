"""What happens to our objects when somebody edits them by hand."""

from typing import Any, cast

import pulumi

# Ours alone, whoever wrote to them last. Not the namespace and NVIDIA's policy, which may be somebody else's: a
# conflict over them has to be seen.
_OURS = {
    "kubernetes:ray.io/v1:RayService",
    "kubernetes:core/v1:ConfigMap",
    "kubernetes:core/v1:Service",
    "kubernetes:batch/v1:CronJob",
}


def heal_by_force(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Take back fields that another field manager (`kubectl edit`) has taken over; without this `up` would refuse."""
    if args.type_ not in _OURS:
        return None
    metadata: dict[str, Any] = {**cast("dict[str, Any]", args.props.get("metadata") or {})}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), "pulumi.com/patchForce": "true"}
    return pulumi.ResourceTransformResult(props={**args.props, "metadata": metadata}, opts=args.opts)
