"""What the nodes say that engine pods have to be given, beside what a stack file says."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Discovered:
    """environment: UCX's variables. supplemental_groups: groups of the nodes that may open their GPUs."""

    environment: Mapping[str, str] = field(default_factory=dict)
    supplemental_groups: tuple[int, ...] = ()


NOTHING = Discovered()
