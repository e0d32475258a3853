"""A node's fabric for people: a table of the ports, what engines get, and what was found."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from serving.fabric.choose import Choice
from serving.fabric.nics import Nic
from serving.fabric.node import NodeFabric

_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def print_fabric(console: Console, fabric: NodeFabric, choice: Choice) -> None:

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)  # one line each, for grep

    kernel, gpus = fabric.kernel, fabric.gpus.gpus
    facts = [fabric.hostname or "node", f"kernel {kernel.release or 'unknown'}", f"{len(gpus)} AMD GPUs"]
    facts += [f"amdgpu {kernel.amdgpu}"] if kernel.amdgpu else []
    facts += [f"ROCm {kernel.rocm}"] if kernel.rocm else []
    say(escape(", ".join(facts)))
    if fabric.devices:
        console.print(_ports(fabric, choice))
    for name, value in choice.environment.items():
        say(f"{name}={value}")
    if choice.supplemental_groups:
        say(escape(f"supplementalGroups: {list(choice.supplemental_groups)}"))
    if fabric.devices:
        say(escape(f"GPU-direct RDMA: {choice.gpu_direct.method} ({choice.gpu_direct.reason})"))
    for finding in choice.findings:
        fix = f"; {finding.fix}" if finding.fix else ""
        colour = _COLOURS[finding.severity]
        say(f"[{colour}]{finding.severity}[/{colour}]: {escape(finding.text + fix)}")
    say(f"fabric: {'usable' if choice.usable else 'not usable'}, {len(choice.net_devices)} NICs")


def _ports(fabric: NodeFabric, choice: Choice) -> Table:
    table = Table(*("port", "driver", "netdev", "VRF", "state", "Gb/s", "MTU", "GID", "NUMA", "use"))
    for device, port in fabric.ports:
        nic, netdev = Nic(device, port), port.netdev
        index = choice.gid_index if choice.gid_index is not None else nic.gid_index
        address = next((gid.address for gid in port.gids if gid.index == index), None)
        cells = (
            nic.name,
            device.driver + (f" {device.function}" if device.function else ""),
            netdev.name if netdev else None,
            netdev.vrf if netdev else None,
            port.state,
            f"{port.rate_gbps:g}" if port.rate_gbps else None,
            f"{port.active_mtu} of {netdev.mtu}" if netdev and port.active_mtu else None,
            f"{index} {address}" if address else None,
            device.numa_node,
            choice.excluded.get(nic.name, "yes"),
        )
        table.add_row(*("-" if cell is None else escape(str(cell)) for cell in cells))
    return table
