"""What a stack file does not say because the update itself finds it out: built images, and what the nodes tell."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pulumi

from infra.fabric_facts import FabricFacts
from infra.images import BuiltImages
from serving.fabric.discovered import Discovered
from serving.stack import Stack


@dataclass(frozen=True)
class Late:
    """Either is None where the stack file says it all."""

    images: BuiltImages | None = None
    facts: FabricFacts | None = None

    def with_facts(self, facts: FabricFacts | None) -> "Late":
        """The same and what the nodes told: for what comes after their inspection, and runs on them."""
        return replace(self, facts=facts)

    def of[Built](self, stack: Stack, build: Callable[[Stack], Built]) -> pulumi.Input[Built]:
        """What `build` makes of the stack once all of this is known; at once where nothing of it is late."""
        if self.images is None and self.facts is None:
            return build(stack)
        late: dict[str, pulumi.Output[Any]] = {}
        if self.images is not None:
            late |= {"engine": self.images.engine, "benchmark": self.images.benchmark}
        if self.facts is not None:
            late |= {"environment": self.facts.environment, "groups": self.facts.supplementalGroups}

        def known(values: dict[str, Any]) -> Built:
            whole = stack
            if self.images is not None:
                whole = whole.with_images(values["engine"], values["benchmark"])
            if self.facts is not None:
                whole = whole.on_fabric(_discovered(values["environment"], values["groups"]))
            return build(whole)

        return pulumi.Output.all(**late).apply(known)


def _discovered(environment: dict[str, str] | None, groups: list[float] | None) -> Discovered:
    # On the wire it has no order, and in a pod's list of variables another order is another pod.
    in_order = dict(sorted((environment or {}).items()))
    return Discovered(in_order, tuple(int(group) for group in groups or ()))
