"""Bytes over the NICs of each node, as Prometheus' node-exporter counts them.

RDMA passes by the kernel, so a NIC's ordinary counters do not show it. Two collectors of node-exporter do:

* `ethtool` (off by default) has a ConnectX driver's own counters of a port or virtual function, RDMA and kernel apart.
  It spells `rx_vport_rdma_unicast_bytes` as `node_ethtool_received_vport_rdma_unicast_bytes` (buildEthtoolFQName in
  collector/ethtool_linux.go), and the driver leaves RDMA out of `rx_vport_unicast_bytes` (Linux' counters of mlx5).
* `infiniband` (on by default) has the RDMA bytes of each device and port, and nothing of the kernel's. node-exporter
  has multiplied sysfs' four-byte words already.

Where a node has both, they count the same bytes twice, and the first is read. Names read in node-exporter's source;
never yet seen on an MI325X node.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel

from benchmarks.errors import BenchmarkError
from benchmarks.metrics import Counters, addresses, parse, scrape_text
from benchmarks.target import Target

# (received, transmitted)
ETHTOOL_RDMA = ("node_ethtool_received_vport_rdma_unicast_bytes", "node_ethtool_transmitted_vport_rdma_unicast_bytes")
ETHTOOL_KERNEL = ("node_ethtool_received_vport_unicast_bytes", "node_ethtool_transmitted_vport_unicast_bytes")
INFINIBAND = ("node_infiniband_port_data_received_bytes_total", "node_infiniband_port_data_transmitted_bytes_total")
NETDEV_RECEIVED = "node_network_receive_bytes_total"
_OF_NICS = (*ETHTOOL_RDMA, *ETHTOOL_KERNEL, *INFINIBAND)
_READ = {*_OF_NICS, NETDEV_RECEIVED}


class Nic(BaseModel):
    """Bytes over one RDMA NIC during a rate. Kernel bytes (TCP) are None where only `infiniband` is there."""

    node: str
    device: str
    rdma_received: int
    rdma_transmitted: int
    kernel_received: int | None = None
    kernel_transmitted: int | None = None

    @property
    def rdma(self) -> int:
        """RDMA bytes in both directions."""
        return self.rdma_received + self.rdma_transmitted


class NicBytes(BaseModel):
    """What all nodes' NICs carried during one rate, or why that is not known (`problem`).

    `received_elsewhere`: node to the bytes that its kernel received on the busiest device that is no RDMA NIC; one
    only, because bridges and virtual devices count the same bytes again. Nodes are named as their exporters are asked,
    `10.0.0.2:9100`.
    """

    nics: list[Nic] = []
    received_elsewhere: dict[str, int] = {}
    problem: str | None = None

    def of(self, addresses: Collection[str]) -> NicBytes:
        """The same of the nodes whose exporters were asked at these addresses."""
        return NicBytes(
            nics=[nic for nic in self.nics if _address(nic.node) in addresses],
            received_elsewhere={
                node: count for node, count in self.received_elsewhere.items() if _address(node) in addresses
            },
        )

    @property
    def by_kernel(self) -> int:
        """Bytes that came in through the kernel, as far as they were counted."""
        return sum(nic.kernel_received or 0 for nic in self.nics) + sum(self.received_elsewhere.values())

    @property
    def rdma_received(self) -> int:
        """RDMA bytes that came in over all NICs."""
        return sum(nic.rdma_received for nic in self.nics)

    @property
    def kernel_received(self) -> int | None:
        """Kernel bytes that came in over the RDMA NICs; None where not every NIC shows them."""
        known = [nic.kernel_received for nic in self.nics if nic.kernel_received is not None]
        return sum(known) if self.nics and len(known) == len(self.nics) else None

    @property
    def rdma_share(self) -> float | None:
        """RDMA bytes among all that came in over the RDMA NICs, 0 to 1."""
        kernel = self.kernel_received
        return self.rdma_received / (self.rdma_received + kernel) if kernel is not None and self.rdma_received else None

    def most_uneven(self, ignored: float) -> tuple[float, Nic, Nic] | None:
        """On the most uneven node: RDMA bytes of its emptiest NIC over those of its fullest, 0 to 1, and the two.

        Nodes with one NIC, or with no more than `ignored` bytes over all of theirs, are left out; None: no node left.
        """
        found: list[tuple[float, Nic, Nic]] = []
        for node in sorted({nic.node for nic in self.nics}):
            nics = sorted((nic for nic in self.nics if nic.node == node), key=lambda nic: nic.rdma)
            if len(nics) > 1 and sum(nic.rdma for nic in nics) > ignored:
                found.append((nics[0].rdma / nics[-1].rdma, nics[0], nics[-1]))
        return min(found, key=lambda entry: entry[0], default=None)


def exporters(target: Target) -> list[str]:
    """The URLs of the target's node-exporters as of now; none when it names none. Raises BenchmarkError."""
    if target.node_exporter_service is None:
        return target.node_exporter_urls
    return addresses(target.node_exporter_service, "node-exporter service", "do the nodes run one?")


def read_nics(target: Target, keep: Path | None = None) -> Counters:
    """Scrape every node-exporter once; each series gets its exporter's address as label `node`. Raises BenchmarkError.

    With `keep`, the lines that were read are written to `keep`-<index>.prom.
    """
    merged: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for index, url in enumerate(exporters(target)):
        lines = [line for line in scrape_text(url, "node-exporter").splitlines() if line.partition("{")[0] in _READ]
        text = "\n".join(lines) + "\n"
        if keep is not None:
            keep.with_name(f"{keep.name}-{index}.prom").write_text(f"# {url}\n{text}", encoding="utf-8")
        try:
            found = parse(text).values
        except ValueError as error:
            raise BenchmarkError(f"node-exporter {url} does not speak Prometheus text: {error}") from None
        node = ("node", urlsplit(url).netloc)
        merged |= {(name, labels | {node}): value for (name, labels), value in found.items()}
    return Counters(merged)


def increase(before: Counters, after: Counters) -> NicBytes:
    """What the NICs carried between two readings. Devices without RDMA may come and go: pods bring some with them."""
    delta = after.since(before)
    if odd := delta.only([*_READ]).not_finite():
        return NicBytes(problem=f"a node-exporter says NaN or infinite of {', '.join(odd)}")
    ours = delta.only(_OF_NICS)
    if ours.gone or any(value < 0 for value in ours.values.values()):
        return NicBytes(problem="the counters of a NIC began anew during the rate: a node or its driver was restarted")
    unseen = sorted({dict(labels)["node"] for _, labels in ours.values.keys() - before.values.keys()})
    if unseen:
        return NicBytes(problem=f"NICs came up during the rate on {', '.join(unseen)}")
    nics = [nic for node in sorted(_nodes(ours)) for nic in _nics(ours, node)]
    if not nics:
        return NicBytes(problem="no node-exporter shows an RDMA NIC; run it with --collector.ethtool on the nodes")
    kept = Counters({key: value for key, value in delta.values.items() if key in before.values})
    return NicBytes(nics=nics, received_elsewhere=_busiest_others(kept, nics))


def _address(node: str) -> str:
    return urlsplit(f"//{node}").hostname or ""


def _nodes(delta: Counters) -> set[str]:
    return {dict(labels)["node"] for _, labels in delta.values}


def _nics(delta: Counters, node: str) -> list[Nic]:
    received, transmitted = (_of_node(delta, name, node) for name in ETHTOOL_RDMA)
    kernel_received, kernel_transmitted = (_of_node(delta, name, node) for name in ETHTOOL_KERNEL)
    if not received:
        received, transmitted = (_of_node(delta, name, node) for name in INFINIBAND)
        kernel_received = kernel_transmitted = {}
    return [
        Nic(
            node=node,
            device=device,
            rdma_received=received[device],
            rdma_transmitted=transmitted.get(device, 0),
            kernel_received=kernel_received.get(device),
            kernel_transmitted=kernel_transmitted.get(device),
        )
        for device in sorted(received)
    ]


def _of_node(delta: Counters, name: str, node: str) -> dict[str, int]:
    """Device (of infiniband: device/port) to bytes."""
    found: dict[str, int] = {}
    for labels, value in delta.by_labels(name).items():
        about = dict(labels)
        if about["node"] == node:
            device = "/".join(about[key] for key in ("device", "port") if key in about)
            found[device] = round(value)
    return found


def _busiest_others(delta: Counters, nics: Sequence[Nic]) -> dict[str, int]:
    busiest: dict[str, int] = {}
    for node in sorted(_nodes(delta)):
        ours = {nic.device for nic in nics if nic.node == node} | {"lo"}
        others = [value for device, value in _of_node(delta, NETDEV_RECEIVED, node).items() if device not in ours]
        busiest[node] = max(others, default=0)
    return busiest
