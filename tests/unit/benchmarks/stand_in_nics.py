"""NIC counters as they would be on two nodes of a fabric."""

from __future__ import annotations

from benchmarks.nic_counters import Nic, NicBytes

# What the ROCm platform lets UCX use.
RC = "rc,sm,self,rocm_copy,rocm_ipc"


def carried(rdma: int, kernel: int = 0, other: int = 0, nics: int = 8) -> NicBytes:
    """Two nodes: one sent `rdma` bytes over its NICs, evenly, the other received them."""
    part, tcp = rdma // nics, kernel // nics
    return NicBytes(
        nics=[
            *(Nic(node="a", device=f"fabric{n}", rdma_received=0, rdma_transmitted=part) for n in range(nics)),
            *(
                Nic(node="b", device=f"fabric{n}", rdma_received=part, rdma_transmitted=0, kernel_received=tcp)
                for n in range(nics)
            ),
        ],
        other_received=other,
    )
