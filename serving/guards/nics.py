"""NICs by name: those that UCX and RCCL are told to take."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.transfer import asks_for_rdma, by_nixl, by_ucx, ucx_version
from serving.guards.view import Engine, View
from serving.ucx_transports import RDMA, allowed

_NET = "UCX_NET_DEVICES"
# Names of RDMA devices as drivers give them: mlx5_0, rocep1s0, ibp12s0, bnxt_re0, ionic_0, rdma0. DOKS names the
# interfaces of its NICs fabric0 to fabric7; the devices are mlx5_*.
_RDMA = re.compile(r"(mlx\d+_|roce|ib|bnxt_re|ionic|irdma|rdma|erdma|hns)\w*(:\d+)?")
_ETHERNET = re.compile(r"(eth|ens|enp|eno|bond|lo|docker|cni|veth|fabric)[\w.]*")
_ONE_EACH = 8  # NICs of a node of eight GPUs, and as many names as someone types


def _devices(view: View) -> Iterator[tuple[Located, list[str], int]]:
    """What UCX_NET_DEVICES names, one after the other, with the ranks of the engine."""
    for engine in view.moving():
        value = engine.variable(_NET)
        if value is not None and "$" not in value and by_nixl(engine):
            names = [name.strip() for name in value.split(",") if name.strip()]
            if names and not value.strip().startswith("^"):
                yield engine.environment[_NET], names, engine.gpus


@guard(
    "ucx-nics-assumed",
    "warning",
    what=f"{_NET} lists mlx5_0 to mlx5_7, as if the NICs of the fabric were the first eight",
    silently="a front-end NIC or a dead port is among them; UCX warns of names that do not exist and takes the rest",
    fix="name what `rdma link` shows ACTIVE on these nodes, or leave it out and let the nodes tell",
    source="oracle-quickstart/oci-hpc-oke MI300X manifests (mlx5_0,2,3,4,5,7,8,9)",
)
def ucx_nics_assumed(view: View) -> Iterator[Found]:
    for at, names, _ in _devices(view):
        if view.platform == "rocm" and [n.partition(":")[0] for n in names] == [f"mlx5_{n}" for n in range(_ONE_EACH)]:
            yield at, ",".join(names)


@guard(
    "ucx-nic-without-port",
    "error",
    what=f"{_NET} names a NIC without its port, or as a range, on a UCX that wants both written out",
    silently="UCX warns that the device is not available and uses what is left: TCP, or nothing",
    fix="write mlx5_0:1 for port 1 of mlx5_0, each by itself",
    source="openucx#11142 (merged 2026-01, in 1.21); ucp_context.c ucp_is_resource_in_device_list (exact match)",
)
def ucx_nic_without_port(view: View) -> Iterator[Found]:
    version = ucx_version(view)
    if version is None or version >= Version("1.21"):
        return
    for at, names, _ in _devices(view):
        wrong = [name for name in names if re.fullmatch(r"mlx\d+_(\d+|\[.*\].*)", name)]
        if wrong:
            yield at, f"{', '.join(wrong)} with UCX {version}"


@guard(
    "ucx-net-ethernet",
    "error",
    what=f"{_NET} names network interfaces of the kernel and no RDMA device, where RDMA is meant",
    silently="UCX can use TCP alone: KV moves up to 19 times slower, or not at all where UCX_TLS has no tcp",
    fix="name RDMA devices with their port, such as mlx5_2:1 (`rdma link` shows them), not interfaces",
    source="openucx: a TCP device is an interface, an RDMA device is a name and a port (`ucx_info -d`)",
)
def ucx_net_ethernet(view: View) -> Iterator[Found]:
    for engine in view.moving() if view.platform in ("rocm", "cuda") else ():
        names = ethernet_alone(engine)
        transports = engine.variable("UCX_TLS")
        meant = asks_for_rdma(engine) or bool(transports and allowed(transports) & RDMA)
        if names and by_ucx(engine) and (meant or any(name.startswith("fabric") for name in names)):
            yield engine.environment[_NET], ",".join(names)


def ethernet_alone(engine: Engine) -> list[str]:
    """What UCX_NET_DEVICES names, where all of it are interfaces of the kernel."""
    names = [name.strip() for name in (engine.variable(_NET) or "").split(",") if name.strip()]
    return names if all(_ETHERNET.fullmatch(name) for name in names) else []


@guard(
    "ucx-one-nic",
    "warning",
    what=f"{_NET} names one NIC for an engine of several ranks",
    silently="all ranks move their KV through it, at a fraction of what the node has",
    fix="name the NICs of all ranks; UCX takes for each rank the one that is nearest to its GPU",
    source="openucx#11259, #11680 (all transfers on mlx5_0)",
)
def ucx_one_nic(view: View) -> Iterator[Found]:
    for at, names, ranks in _devices(view):
        if ranks >= 4 and len(names) == 1 and _RDMA.fullmatch(names[0]) and "[" not in names[0]:
            yield at, f"{names[0]} for {ranks} ranks"


@guard(
    "nccl-hca-prefix",
    "warning",
    what="NCCL_IB_HCA without = in front matches every NIC whose name begins so",
    silently="mlx5_1 also means mlx5_10 and mlx5_11: RCCL takes NICs that are not of the fabric",
    fix="write =mlx5_0,mlx5_1: the sign in front makes names exact",
    source="NCCL user guide, NCCL_IB_HCA; oracle-quickstart/oci-hpc-oke MI300X manifests (`NCCL_IB_HCA==mlx5_...`)",
)
def nccl_hca_prefix(view: View) -> Iterator[Found]:
    for engine in view.engines:
        value = (engine.variable("NCCL_IB_HCA") or "").strip()
        if not value or "=" in value[:2] or "$" in value:
            continue
        names = [name.strip() for name in value.removeprefix("^").split(",")]
        # mlx5_1 begins mlx5_10; a node with twenty is rare. A bare `mlx5` means all.
        wide = [name for name in names if re.fullmatch(r"[a-z]\w*_1(:\d+)?", name)]
        if wide:
            yield engine.environment["NCCL_IB_HCA"], f"{', '.join(wide)} of NCCL_IB_HCA={value}"


@guard(
    "ucx-gid-index-typed",
    "note",
    what="UCX_IB_GID_INDEX is a number, which differs between clouds, drivers and pods",
    silently="the index may be empty in the pod, or of another address family: peers are not reached",
    fix="leave it at auto, or check the GID table of every NIC in the pod (`show_gids`)",
    source="openucx ib_iface.c GID_INDEX (auto); 3 on OCI and DOKS, 1 on AMD's own NICs",
)
def ucx_gid_index_typed(view: View) -> Iterator[Found]:
    for engine in view.moving():
        value = engine.variable("UCX_IB_GID_INDEX")
        # With a traffic class beside it someone has looked at this fabric.
        if value is not None and value.strip().isdecimal() and "UCX_IB_TRAFFIC_CLASS" not in engine.environment:
            yield engine.environment["UCX_IB_GID_INDEX"], f"UCX_IB_GID_INDEX={value}"


@guard(
    "ucx-traffic-class-typed",
    "note",
    what="UCX_IB_TRAFFIC_CLASS is the number that UCX takes anyway",
    silently="nothing changes: whether 106 is the lossless class of this fabric was not asked",
    fix="set the class that the switches treat as lossless (41 on OCI), or leave it out",
    source="openucx ib_iface.c TRAFFIC_CLASS (auto: the port's own, or 106 for RoCE); llm-d's notes on OCI (41)",
)
def ucx_traffic_class_typed(view: View) -> Iterator[Found]:
    for engine in view.moving():
        value = engine.variable("UCX_IB_TRAFFIC_CLASS")
        if value is not None and value.strip() == "106":
            yield engine.environment["UCX_IB_TRAFFIC_CLASS"], f"UCX_IB_TRAFFIC_CLASS={value}"
