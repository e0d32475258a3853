"""AMD GPUs as the kernel shows them: where they are, and the group that may open them."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from serving.fabric.files import names, numa_node, text


class Gpu(BaseModel):
    """One GPU. device: PCI id, for example 74a5. partitions: how many compute devices it shows itself as."""

    model_config = ConfigDict(frozen=True)

    pci_address: str
    numa_node: int | None = None
    device: str | None = None
    partitions: int = 1


class Gpus(BaseModel):
    """render_groups: group ids of /dev/dri/renderD*, of which a process must be in one to use a GPU."""

    model_config = ConfigDict(frozen=True)

    gpus: tuple[Gpu, ...] = ()
    render_groups: tuple[int, ...] = ()


def read_gpus(root: Path) -> Gpus:
    folder = root / "dev/dri"
    groups = [group_id(folder / name) for name in names(folder) if name.startswith("renderD")]
    return Gpus(gpus=_gpus(root), render_groups=tuple(sorted({group for group in groups if group is not None})))


def group_id(path: Path) -> int | None:
    """The group that owns a file; on a node the number is the host's, and differs between images of hosts. None for a
    file that is not there (any more), or a link to one."""
    try:
        return path.stat().st_gid
    except OSError:
        return None


def _gpus(root: Path) -> tuple[Gpu, ...]:
    """From the KFD's topology, in which CPUs are nodes as well; they have no SIMD units."""
    found: dict[str, int] = {}
    topology = root / "sys/class/kfd/kfd/topology/nodes"
    for name in names(topology):
        lines = (text(topology / name / "properties") or "").splitlines()
        properties = {key: int(value) for key, _, value in (line.partition(" ") for line in lines) if value.isdecimal()}
        if properties.get("simd_count"):
            address = _address(properties.get("domain", 0), properties.get("location_id", 0))
            found[address] = found.get(address, 0) + 1
    return tuple(
        Gpu(
            pci_address=address,
            numa_node=numa_node(pci := root / "sys/bus/pci/devices" / address),
            device=(text(pci / "device") or "").removeprefix("0x") or None,
            partitions=partitions,
        )
        for address, partitions in sorted(found.items())
    )


def _address(domain: int, location: int) -> str:
    """`location_id` holds bus, device and function in its low 16 bits (kfd_topology.c: pci_dev_id)."""
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"
