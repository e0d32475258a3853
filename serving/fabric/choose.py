"""What follows from a node's fabric: UCX's variables, the groups of a pod, and what is wrong with the node."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from serving.fabric.findings import Finding, error, note, warning
from serving.fabric.gids import ucx_auto_index
from serving.fabric.gpu_direct import GpuDirect, gpu_direct, gpu_direct_findings
from serving.fabric.nics import Nic, divide
from serving.fabric.node import NodeFabric
from serving.fabric.node_findings import node_findings
from serving.fabric.port_findings import port_findings


class Choice(BaseModel):
    """net_devices: `DEVICE:PORT` of the fabric's NICs. excluded: every other port -> why.

    gid_index: None leaves UCX's own choice, which is right then. gid_indices: all that reach other nodes on every NIC.
    traffic_class: None when the NICs have none set, and
    UCX takes 106. supplemental_groups: what a pod must join to open the GPUs.
    """

    model_config = ConfigDict(frozen=True)

    net_devices: tuple[str, ...]
    excluded: dict[str, str]
    gid_index: int | None
    gid_indices: frozenset[int]
    traffic_class: int | None
    supplemental_groups: tuple[int, ...]
    gpu_direct: GpuDirect
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """There are NICs to use, and nothing that keeps KV from moving."""
        return bool(self.net_devices) and not any(finding.severity == "error" for finding in self.findings)

    @property
    def environment(self) -> dict[str, str]:
        """UCX's variables for engines on this node; empty without a NIC to name."""
        if not self.net_devices:
            return {}
        variables = {
            "UCX_NET_DEVICES": ",".join(self.net_devices),
            "UCX_IB_GID_INDEX": self.gid_index,
            "UCX_IB_TRAFFIC_CLASS": self.traffic_class,
            # `y` without dma-buf keeps UCX's rocm_copy from opening (ucx: rocm_copy_md.c), peer memory or not.
            "UCX_ROCM_COPY_DMABUF": {"dma-buf": "y", "peer-memory": "n"}.get(self.gpu_direct.method),
        }
        return {name: str(value) for name, value in variables.items() if value is not None}


def choose(fabric: NodeFabric, ucx: str = "") -> Choice:
    """Decide. ucx: the engines' UCX version (`1.19.0`); unknown when empty or a commit."""
    used, excluded = divide(fabric)
    gid_index, gid_findings = _gid_index(used)
    traffic_class, class_findings = _traffic_class(used)
    direct = gpu_direct(fabric)
    findings = [
        *port_findings(fabric, used, excluded, ucx),
        *gid_findings,
        *class_findings,
        *(gpu_direct_findings(fabric, direct) if used else []),
        *(node_findings(fabric) if used else []),
    ]
    order = ("error", "warning", "note")
    return Choice(
        net_devices=tuple(nic.name for nic in used),
        excluded={entry.nic.name: entry.reason for entry in excluded},
        gid_index=gid_index,
        gid_indices=_common_indices(used),
        traffic_class=traffic_class,
        supplemental_groups=tuple(group for group in fabric.gpus.render_groups if group),  # root's is no group to join
        gpu_direct=direct,
        findings=tuple(sorted(findings, key=lambda finding: order.index(finding.severity))),
    )


def _gid_index(nics: Iterable[Nic]) -> tuple[int | None, list[Finding]]:
    """One index for all NICs, as UCX_IB_GID_INDEX is one; None where UCX's own choice is right on each."""
    wanted = {nic: index for nic in nics if (index := nic.gid_index) is not None}
    roce = [nic for nic in nics if nic.roce]
    if not wanted:
        text = "NICs have link-local addresses only, which reach one Ethernet segment"
        fix = "give the network devices of the fabric an address (IPv4, or IPv6 global or unique local)"
        return None, [warning("link-local", text, fix)] if roce else []
    if all(ucx_auto_index(nic.port.gids) == index for nic, index in wanted.items()):
        return None, []
    common = _common_indices(wanted)
    if not common:
        text = f"no GID index is a routable RoCE v2 address on every NIC: {_each(wanted)}"
        return None, [error("gid-index", text, "set the addresses in the same order on every network device")]
    liked = [index for index in wanted.values() if index in common]
    return (liked or sorted(common))[0], []


def _common_indices(nics: Iterable[Nic]) -> frozenset[int]:
    routable = [frozenset(gid.index for gid in nic.port.gids if gid.routable) for nic in nics if nic.roce]
    return frozenset.intersection(*routable) if routable else frozenset()


def _each(wanted: dict[Nic, int]) -> str:
    return ", ".join(f"{nic.name} {index}" for nic, index in wanted.items())


def _traffic_class(nics: Iterable[Nic]) -> tuple[int | None, list[Finding]]:
    roce = [nic for nic in nics if nic.roce]
    classes = {nic.port.traffic_class for nic in roce}
    if len(classes) == 1 and (found := classes.pop()) is not None:
        return found, []
    if classes - {None}:
        each = ", ".join(
            f"{nic.name} {'none' if nic.port.traffic_class is None else nic.port.traffic_class}" for nic in roce
        )
        fix = "set the same one on every NIC (/sys/class/infiniband/DEVICE/tc/PORT/traffic_class)"
        return None, [warning("traffic-class", f"NICs differ in their traffic class: {each}", fix)]
    text = "no traffic class is set on the NICs: UCX takes 106, which a fabric need not carry without loss"
    fix = "ask who runs the fabric, and set UCX_IB_TRAFFIC_CLASS (41 on OCI) in cluster.nodes.environment"
    return None, [note("traffic-class", text, fix)] if roce else []
