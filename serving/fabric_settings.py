"""Setting `fabric`: whether the nodes' RDMA is looked at, and whether it has to be proven before anything serves."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from serving.settings_base import Settings

GateMode = Literal["required", "warn", "off"]
_FASTEST_GBPS = 10_000  # far above any link; a floor beyond it is a slip of units


def _off_is_a_word(value: object) -> object:
    """YAML reads `off` without quotes as false."""
    return "off" if value is False else value


class Fabric(Settings):
    """On Kubernetes, for stacks that move KV between nodes. What each mode does: serving/fabric_plan.py."""

    gate: Annotated[GateMode, BeforeValidator(_off_is_a_word)] = Field(
        default="required", description="what becomes of an update whose RDMA gate fails"
    )
    floor_gbps: float | None = Field(
        default=None,
        gt=0,
        le=_FASTEST_GBPS,
        description="least Gb/s of one NIC in the gate; none: by its link",
    )
    discover: bool = Field(default=True, description="read the nodes' fabric, and give engines what follows from it")
