"""Small files and links of /sys and /proc. What is not there, or cannot be read, is None, as nodes differ.

Reading an empty slot of a kernel table (a GID without an address) raises EINVAL, which counts as not there as well.
"""

import re
from pathlib import Path

_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def text(path: Path) -> str | None:
    """The content without the line end; None for an empty file too."""
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None


def integer(path: Path) -> int | None:
    """A number as the kernel writes it: decimal, or hexadecimal with 0x."""
    try:
        return int(text(path) or "", 0)
    except ValueError:
        return None


def names(folder: Path) -> list[str]:
    """What is in a folder, numbers in the order of numbers: mlx5_2 before mlx5_10."""
    try:
        found = [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
    return sorted(found, key=natural_order)


def natural_order(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def link_name(path: Path) -> str | None:
    """The last part of what a symbolic link points to: a driver's, a group's or a device's name."""
    try:
        return path.readlink().name
    except OSError:
        return None


def pci_address(path: Path) -> str | None:
    """The PCI function that a device folder of /sys is or is below, for example 0000:86:00.0; None for software."""
    found = _PCI_ADDRESS.findall(str(path.resolve()))
    return found[-1] if found else None


def numa_node(path: Path) -> int | None:
    """The NUMA node of a PCI function's folder; None where firmware tells none (-1), as in many virtual machines."""
    node = integer(path / "numa_node")
    return node if node is not None and node >= 0 else None
