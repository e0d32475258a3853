"""What several nodes have in common: one set of UCX's variables for engines that may run on any of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from serving.fabric.choose import Choice, choose
from serving.fabric.findings import Finding, error
from serving.fabric.node import NodeFabric

NET_DEVICES, GID_INDEX, TRAFFIC_CLASS = "UCX_NET_DEVICES", "UCX_IB_GID_INDEX", "UCX_IB_TRAFFIC_CLASS"
DMABUF = "UCX_ROCM_COPY_DMABUF"
DISCOVERED = (NET_DEVICES, GID_INDEX, TRAFFIC_CLASS, DMABUF)
_NOT_SET = "not set"
# Errors of a node that whoever sets the variable by hand has answered.
_ANSWERED_BY = {"none-usable": NET_DEVICES, "nic-lost": NET_DEVICES, "gid-index": GID_INDEX, "gpu-direct": DMABUF}


@dataclass(frozen=True)
class Fabric:
    """What nodes tell together.

    environment: what is set nowhere by hand and fits all. supplemental_groups: of all of them. devices: NICs in use
    (`mlx5_0:1`). hardware: those of them that are software on no node. link_gbps: of the slowest of these, 10^9 bits/s;
    None where none is known. problems: one line each, with which no RayService can be made that fits all nodes.
    unusable: a line for each node that has an error. findings: node -> what else was found. notes: where something set
    by hand differs from what the nodes say.
    """

    environment: dict[str, str] = field(default_factory=dict)
    supplemental_groups: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    link_gbps: float | None = None
    problems: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    findings: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def with_engine_rights(fabric: NodeFabric) -> NodeFabric:
    """The node as an engine has it: with IPC_LOCK (serving/platforms.py), which whoever read the node had not."""
    return fabric.model_copy(update={"kernel": fabric.kernel.model_copy(update={"ipc_lock": True})})


def combine(nodes: Mapping[str, NodeFabric], given: Mapping[str, str], ucx: str = "") -> Fabric:
    """Node name -> what it told. given: variables set by hand, which win. ucx: the engines' version, if it has one."""
    choices = {node: choose(with_engine_rights(nodes[node]), ucx) for node in sorted(nodes)}
    told = {node: choice.environment for node, choice in choices.items()}
    environment: dict[str, str] = {}
    problems, notes = [], []
    for name in DISCOVERED:
        values = {node: variables.get(name, _NOT_SET) for node, variables in told.items()}
        if name in given:
            if (others := set(values.values()) - {_NOT_SET}) and others != {given[name]}:
                notes.append(f"{name}={given[name]} of the stack is used; the nodes say {_by_value(values)}")
        elif len(set(values.values())) > 1 and name == GID_INDEX and (index := _shared_index(choices.values())):
            environment[name] = index
        elif len(set(values.values())) > 1:
            fix = f"make the nodes alike, or set cluster.nodes.environment.{name}"
            problems.append(f"{name} differs between nodes, and engines have one: {_by_value(values)}; {fix}")
        elif (value := next(iter(values.values()), _NOT_SET)) != _NOT_SET:
            environment[name] = value
    devices = tuple(name for name in {**environment, **given}.get(NET_DEVICES, "").split(",") if name)
    rates, missing = _rates(nodes, devices)
    software = {node: _software(nodes[node], devices) for node in choices}
    return Fabric(
        environment=environment,
        supplemental_groups=tuple(sorted({group for it in choices.values() for group in it.supplemental_groups})),
        devices=devices,
        hardware=tuple(name for name in devices if not any(name in of_node for of_node in software.values())),
        link_gbps=min(rates) if rates else None,
        problems=(*problems, *missing),
        unusable=tuple(
            line for node, choice in choices.items() if (line := _error(node, choice, given, software[node]))
        ),
        findings={node: _others(choice, given) for node, choice in choices.items()},
        notes=tuple(notes),
    )


def _shared_index(choices: Collection[Choice]) -> str:
    """A GID index that one node needs and that reaches other nodes from all of them; empty without one.

    A node that needs none set, since UCX finds its address by itself, is served by it as well.
    """
    told = [choice.gid_index for choice in choices if choice.gid_index is not None]
    return next((str(index) for index in told if all(index in choice.gid_indices for choice in choices)), "")


def _by_value(values: Mapping[str, str]) -> str:
    """`3 on node-a, node-b; 1 on node-c`."""
    nodes: dict[str, list[str]] = {}
    for node, value in values.items():
        nodes.setdefault(value, []).append(node)
    return "; ".join(f"{value} on {', '.join(names)}" for value, names in nodes.items())


def _rates(nodes: Mapping[str, NodeFabric], devices: tuple[str, ...]) -> tuple[list[float], list[str]]:
    """(Gb/s of each of these devices on each node, a line for each node that has not all of them)."""
    rates: list[float] = []
    lines: list[str] = []
    for node in sorted(nodes):
        ports = {f"{device.name}:{port.number}": port.rate_gbps for device, port in nodes[node].ports}
        rates += [rate for name in devices if (rate := ports.get(name))]
        if absent := [name for name in devices if ":" in name and name not in ports]:  # UCX knows `all` as well
            there = ", ".join(ports) or "no RDMA device"
            lines.append(f"{node} lacks {', '.join(absent)} of {NET_DEVICES} and has {there}; name what every node has")
    return rates, lines


def _software(node: NodeFabric, devices: tuple[str, ...]) -> dict[str, str]:
    """Those of the devices that are software on a node -> their driver. Only a name given by hand can be one."""
    return {
        name: device.driver
        for device, port in node.ports
        if device.software and (name := f"{device.name}:{port.number}") in devices
    }


def _error(node: str, choice: Choice, given: Mapping[str, str], software: Mapping[str, str]) -> str:
    errors = [it for it in choice.findings if it.severity == "error" and _ANSWERED_BY.get(it.code) not in given]
    if software:
        each = ", ".join(f"{name} ({driver})" for name, driver in software.items())
        errors.append(error("software", f"{NET_DEVICES} names software and no NIC: {each}", "name NICs, or none"))
    return f"{node} has no usable fabric: " + "; ".join(f"{it.text}; {it.fix}" for it in errors) if errors else ""


def _others(choice: Choice, given: Mapping[str, str]) -> tuple[Finding, ...]:
    return tuple(it for it in choice.findings if it.severity != "error" or _ANSWERED_BY.get(it.code) in given)
