"""The probable cause of a failed run, as far as its logs show it, with what to do about it."""

from serving.rdma_gate.gate_run import Cause, GateRun, GpuDirect
from serving.rdma_gate.ucx_perftest import PerftestLog, Problem, ProblemKind
from serving.ucx_transports import RDMA, TCP, allowed


def probable_cause(
    run: GateRun, client: PerftestLog, server: PerftestLog, lanes: tuple[str, ...], gpu_direct: GpuDirect
) -> Cause | None:
    """The first cause that the evidence fits, or None. lanes: all that the tables of remote memory reads name."""
    problems = _first_of_each((*client.problems, *server.problems))
    sides = (client, server)
    if "dmabuf-missing" in problems:
        return Cause(
            "UCX finds no dma-buf support: it reads the kernel's options from /boot/config-$(uname -r) only, which the "
            "container does not show, or the kernel lacks them",
            "mount the node's /boot read-only; if CONFIG_DMABUF_MOVE_NOTIFY or CONFIG_PCI_P2PDMA is not set there, use "
            "another kernel, or peer memory",
        )
    if problem := problems.get("device-missing"):
        return Cause(
            f"{', '.join(problem.subject)}: not in the container, or not a device of this node",
            "compare with `ls /sys/class/infiniband` in the pod, and check the pod's RDMA resource and network mode",
        )
    if run.memory != "host" and not all(f"{run.memory}_copy" in _allowed(side) for side in sides):
        return Cause(
            f"UCX_TLS has no {run.memory}_copy, without which UCX cannot reach {run.memory} memory",
            f"add {run.memory}_copy to UCX_TLS",
        )
    if any(lane.startswith("tcp/") for lane in lanes) and TCP & _allowed(client):
        return Cause(
            f"UCX_TLS={client.environment.get('UCX_TLS', '(not set)')} lets UCX fall back to tcp",
            "name RDMA and no tcp there (rc,sm,self and the copy transports): a missing RDMA path is then an error",
        )
    if problem := problems.get("transport-missing"):
        return Cause(
            f"{', '.join(problem.subject)}: UCX was built without it, or no RDMA device is in the container",
            "run `ucx_info -d` in the pod: it needs an InfiniBand transport (PyPI's libucx wheels have none)",
        )
    if "path-broken" in problems:
        given = (side.environment.get("UCX_IB_GID_INDEX") for side in sides)
        index = next((value for value in given if value), "auto")
        return Cause(
            f"no packet comes through between the NICs, usually a wrong GID (UCX_IB_GID_INDEX={index})",
            "take the index of the RoCE v2 GID with a routable address (`show_gids`) on both nodes, then check MTU, "
            "VRF and the switch",
        )
    if "unreachable" in problems and all(_allowed(side) & RDMA for side in sides):
        if any(side.version == "1.19.0" for side in sides):
            return Cause(
                "UCX 1.19.0 looks for a route in the main routing table only, so a NIC in a VRF seems unreachable",
                "use UCX 1.19.1 or later, or set UCX_IB_ROCE_REACHABILITY_MODE=all",
            )
        return Cause(
            "UCX finds no route from one NIC to the other",
            "compare `ip route show table all` with the peer's address, or set UCX_IB_ROCE_REACHABILITY_MODE=all",
        )
    if run.memory == "rocm" and ("registration" in problems or "no-zero-copy" in problems or gpu_direct == "staged"):
        off = any(side.environment.get("UCX_ROCM_COPY_DMABUF", "n") not in ("y", "yes", "on", "1") for side in sides)
        return Cause(
            "the NIC cannot reach GPU memory: no peer memory in the kernel (gone after 6.0)"
            + (", and dma-buf is not switched on" if off else ""),
            "set UCX_ROCM_COPY_DMABUF=y" if off else "check the kernel's dma-buf options and the IOMMU",
        )
    return None


def _first_of_each(problems: tuple[Problem, ...]) -> dict[ProblemKind, Problem]:
    found: dict[ProblemKind, Problem] = {}
    for problem in problems:
        found.setdefault(problem.kind, problem)
    return found


def _allowed(side: PerftestLog) -> frozenset[str]:
    return allowed(side.environment.get("UCX_TLS", "all"))  # without it UCX uses all
