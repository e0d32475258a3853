"""Builds the /sys, /proc, /dev and /boot of a node below a folder, from a file of fabric_nodes/.

Folders and links are as the kernel has them: a class's folder links to a device's folder below its PCI function.

Keys of a file: kernel (release), hostname, config (of /boot), cmdline, kallsyms, memlock, capabilities, numa_balancing,
files (path -> content). netdevs: name -> mtu, operstate, flags, master, pci, dev_port. default_route: a network device,
or devices with their metrics. rdma: name -> pci, id, driver, numa, netdev, state, phys_state, link_layer, rate,
traffic_class, gids (`index type address [netdev]`), parent, node_type; defaults: of all of these. gpus: PCI address ->
device, numa. like: another file, of which this one changes some keys.
"""

import os
from collections.abc import Callable
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import yaml

from serving.fabric.node import NodeFabric, read_node

NODES = Path(__file__).with_name("fabric_nodes")
Description = dict[str, Any]


def describe(name: str) -> Description:
    node = yaml.safe_load((NODES / f"{name}.yaml").read_text())
    return _merge(describe(node.pop("like")), node) if "like" in node else node


def _merge(base: Description, over: Description) -> Description:
    nested = {key for key, value in over.items() if isinstance(value, dict) and isinstance(base.get(key), dict)}
    return {**base, **over, **{key: _merge(base[key], over[key]) for key in nested}}


def build(root: Path, name: str, change: Callable[[Description], object] = lambda node: None) -> Path:
    """The tree of the node `name`, after `change` of its description."""
    node = describe(name)
    change(node)
    _kernel(root, node)
    for device, settings in node.get("netdevs", {}).items():
        _netdev(root, device, settings or {})
    for device, settings in node.get("rdma", {}).items():
        _rdma(root, device, {**node.get("defaults", {}), **settings})
    _gpus(root, node)
    return root


def read(root: Path, name: str, change: Callable[[Description], object] = lambda node: None) -> NodeFabric:
    return read_node(build(root, name, change))


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{content}\n")


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink():
        path.symlink_to(os.path.relpath(target, path.parent))


def _kernel(root: Path, node: Description) -> None:
    (root / "sys").mkdir(parents=True)
    release = node["kernel"]
    _write(root / "proc/sys/kernel/osrelease", release)
    _write(root / "proc/sys/kernel/hostname", node.get("hostname", "node"))
    _write(root / "proc/sys/kernel/numa_balancing", node.get("numa_balancing", 0))
    _write(root / "proc/cmdline", node.get("cmdline", "quiet"))
    _write(root / "proc/kallsyms", "\n".join(f"0000000000000000 T {name}" for name in node.get("kallsyms", ["_text"])))
    _write(root / "proc/self/status", f"Name:\tpython\nCapEff:\t{node.get('capabilities', 0):016x}")
    limit = node.get("memlock", "unlimited")
    _write(
        root / "proc/self/limits", f"Max processes  1  1  processes\nMax locked memory         {limit} {limit} bytes"
    )
    header = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT"
    routes = [
        f"{device}\t00000000\t01000A0A\t0003\t0\t0\t{metric}\t00000000\t0\t0\t0" for device, metric in _routes(node)
    ]
    _write(root / "proc/net/route", "\n".join([header, *routes]))
    if config := node.get("config"):
        lines = [f"{name}=y" if value else f"# {name} is not set" for name, value in config.items()]
        _write(root / f"boot/config-{release}", "\n".join(lines))
    for path, content in node.get("files", {}).items():
        _write(root / path, content)


def _routes(node: Description) -> list[tuple[str, int]]:
    route = node.get("default_route")
    return list(route.items()) if isinstance(route, dict) else [(route, 0)] if route else []


def _pci(root: Path, address: str) -> Path:
    return root / "sys/devices/pci0000:00" / address


def _netdev(root: Path, name: str, settings: Description) -> None:
    parent = _pci(root, settings["pci"]) if "pci" in settings else root / "sys/devices/virtual"
    folder = parent / "net" / name
    _write(folder / "operstate", settings.get("operstate", "up"))
    _write(folder / "mtu", settings.get("mtu", 1500))
    _write(folder / "flags", settings.get("flags", "0x1003"))
    _write(folder / "dev_port", settings.get("dev_port", 0))
    _link(root / "sys/class/net" / name, folder)
    if master := settings.get("master"):
        _link(folder / "master", root / "sys/class/net" / master)
        _link(folder / f"upper_{master}", root / "sys/class/net" / master)


def _rdma(root: Path, name: str, settings: Description) -> None:
    pci = _pci(root, settings["pci"]) if "pci" in settings else None
    folder = (pci or root / "sys/devices/virtual") / "infiniband" / name
    if pci:
        vendor, device = settings["id"].split(":")
        _write(pci / "vendor", f"0x{vendor}")
        _write(pci / "device", f"0x{device}")
        _write(pci / "numa_node", settings.get("numa", -1))
        _link(pci / "driver", root / "sys/bus/pci/drivers" / settings["driver"])
        _link(folder / "device", pci)
    _write(folder / "node_type", settings.get("node_type", "1: CA"))
    if "parent" in settings:
        _write(folder / "parent", settings["parent"])
    if "traffic_class" in settings:
        _write(folder / "tc/1/traffic_class", settings["traffic_class"])
    _link(root / "sys/class/infiniband" / name, folder)
    port = folder / "ports/1"
    for key in ("state", "phys_state", "link_layer", "rate"):
        _write(port / key, settings[key])
    gids = {int(index): rest for index, *rest in map(_gid, settings.get("gids", []))}
    for index in range(8):  # an empty slot shows zeros; its type and device cannot be read
        kind, address, netdev = gids.get(index, ("", "::", ""))
        _write(port / "gids" / str(index), IPv6Address(address).exploded)
        if kind:
            _write(port / "gid_attrs/types" / str(index), kind)
            _write(port / "gid_attrs/ndevs" / str(index), netdev or settings["netdev"])


def _gid(line: str) -> tuple[str, str, str, str]:
    index, kind, address, *netdev = line.split()
    return index, {"v1": "IB/RoCE v1", "v2": "RoCE v2"}[kind], address, "".join(netdev)


def _gpus(root: Path, node: Description) -> None:
    topology = root / "sys/class/kfd/kfd/topology/nodes"
    for index, (address, settings) in enumerate(node.get("gpus", {}).items()):
        domain, bus, rest = address.split(":")
        slot, function = rest.split(".")
        location = int(bus, 16) << 8 | int(slot, 16) << 3 | int(function)
        if index == 0:
            _write(topology / "0/properties", "cpu_cores_count 80\nsimd_count 0\nlocation_id 0\ndomain 0")
        lines = f"cpu_cores_count 0\nsimd_count 1216\nlocation_id {location}\ndomain {int(domain, 16)}"
        _write(topology / str(index + 1) / "properties", lines)
        pci = _pci(root, address)
        _write(pci / "device", f"0x{settings['device']}")
        _write(pci / "numa_node", settings.get("numa", -1))
        _link(root / "sys/bus/pci/devices" / address, pci)
        _write(root / f"dev/dri/renderD{128 + index}", "")
