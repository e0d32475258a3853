"""Which GPU of a node is nearest to a NIC, from /sys alone: only the standard library, as it runs in the gate's pods.

ucx_perftest takes GPU 0 at one end and GPU 1 at the other. A NIC would then be judged by a way through the whole node,
across sockets perhaps, which no rank of an engine has to take.
"""

import os
from pathlib import Path

_TOPOLOGY = "class/kfd/kfd/topology/nodes"


def nearest_gpu(device: str, position: int, sys: Path = Path("/sys")) -> int | None:
    """Index of the GPU as HIP counts them (the order of the KFD's topology); None where none is seen.

    device: an RDMA device, `mlx5_0`. position: its place among the fabric's NICs. The nearest has most of the PCI path
    in common, then the same NUMA node. A virtual machine may show neither: then the third NIC goes with the third GPU,
    in the order of their names (a guess: rail-optimised nodes are usually numbered so).
    """
    gpus = _gpus(sys)
    if not gpus:
        return None
    nic = (sys / "class/infiniband" / device / "device").resolve()

    def distance(index: int) -> tuple[int, bool, int]:
        gpu = gpus[index]
        common = Path(os.path.commonpath([nic, gpu])).parts
        return -len(common), _numa(gpu) != _numa(nic), (index - position) % len(gpus)

    return min(range(len(gpus)), key=distance)


def _gpus(sys: Path) -> list[Path]:
    """Folders of the GPUs' PCI functions. CPUs are in the topology as well, and have no SIMD units."""
    found: list[Path] = []
    nodes = [folder for folder in (sys / _TOPOLOGY).glob("*") if folder.name.isdigit()]
    for folder in sorted(nodes, key=lambda folder: int(folder.name)):
        words = (line.split() for line in _text(folder / "properties").splitlines())
        values = {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}
        if values.get("simd_count"):
            bus = values.get("location_id", 0)  # bus, device and function (kfd_topology.c: pci_dev_id)
            address = f"{values.get('domain', 0):04x}:{bus >> 8 & 0xFF:02x}:{bus >> 3 & 0x1F:02x}.{bus & 7}"
            found.append((sys / "bus/pci/devices" / address).resolve())
    return found


def _numa(folder: Path) -> str:
    return _text(folder / "numa_node")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
