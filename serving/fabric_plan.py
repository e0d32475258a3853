"""What happens to the fabric of a stack: the one place that decides whether nodes are inspected and RDMA is proven."""

import re
from dataclasses import dataclass
from typing import Literal

from serving.errors import ConfigError
from serving.fabric_settings import GateMode
from serving.stack import Stack

NET_DEVICES = "UCX_NET_DEVICES"
Gate = GateMode | Literal["none"]
# ucx_perftest's name of the GPU memory. CUDA has a gate once its pods have run with one.
_MEMORY: dict[str, Literal["rocm", "cuda"]] = {"rocm": "rocm"}


@dataclass(frozen=True)
class FabricPlan:
    """gate: `none` where there is nothing to prove, and `reason` says why. inspect: the nodes' fabric is discovered.

    memory: what the gate moves. devices: NICs that the stack file names itself, as UCX does (`mlx5_0:1`); empty: those
    that are discovered.
    """

    gate: Gate
    reason: str
    inspect: bool = False
    memory: Literal["rocm", "cuda", "host"] = "host"
    devices: tuple[str, ...] = ()

    @property
    def runs_gate(self) -> bool:
        return self.gate in ("required", "warn")


def fabric_plan(stack: Stack) -> FabricPlan:
    """Decide. Raises ConfigError for a gate that could not know which NICs to test, or what to expect of them."""
    if why := _nothing_to_prove(stack):
        return FabricPlan("none", why)
    named = stack.profile.environment.get(NET_DEVICES, "")
    plan = FabricPlan(
        gate=stack.fabric.gate,
        reason="fabric.gate is off" if stack.fabric.gate == "off" else "",
        # A pod of the other network modes has NICs of its own, which no inspector on the node can tell.
        inspect=stack.fabric.discover and stack.profile.network == "host",
        memory=_MEMORY[stack.platform],
        devices=tuple(name for name in named.split(",") if name),
    )
    if plan.runs_gate:
        _check_ports(plan)
        if not plan.inspect:
            _check_named(stack, plan)
    return plan


def _nothing_to_prove(stack: Stack) -> str:
    if stack.target != "kubernetes":
        return f"target {stack.target}: the nodes are not this project's to look at"
    if not stack.topology_.disaggregated:
        return f"topology {stack.topology}: no KV is moved"
    if stack.platform not in _MEMORY:
        return f"platform {stack.platform} has no RDMA gate"
    if not stack.profile.rdma_resources:
        return "the nodes have no RDMA resources (cluster.nodes.rdmaResources)"
    return ""


def _check_ports(plan: FabricPlan) -> None:
    """UCX takes `mlx5_0` as well, and `all`; its tables, which prove what was used, have ports."""
    if bad := [name for name in plan.devices if not re.fullmatch(r"[\w.-]+:\d+", name)]:
        key = f"cluster.nodes.environment.{NET_DEVICES}"
        raise ConfigError(key, f"{', '.join(bad)} names no port, and the RDMA gate compares them", "write mlx5_0:1,...")


def _check_named(stack: Stack, plan: FabricPlan) -> None:
    why = "discover is false" if stack.profile.network == "host" else f"network {stack.profile.network} hides the NICs"
    off = "or set fabric.gate: off"
    if not plan.devices:
        fix = f"name them in cluster.nodes.environment.{NET_DEVICES}, {off}"
        raise ConfigError("fabric.gate", f"{stack.fabric.gate} has to know the NICs, and {why}", fix)
    if stack.fabric.floor_gbps is None:
        problem = f"is required: {why}, so the speed of their links is not known"
        raise ConfigError("fabric.floorGbps", problem, f"give the least Gb/s of one NIC (half of its link), {off}")
