"""NIC counters as they would be on two nodes of a fabric."""

from __future__ import annotations

from benchmarks.nic_counters import Nic, NicBytes

# What the ROCm platform lets UCX use.
RC = "rc,sm,self,rocm_copy,rocm_ipc"


PREFILL, DECODE = "10.0.0.1", "10.0.0.2"


def carried(rdma: int, kernel: int = 0, other: int = 0, nics: int = 8, to: str = DECODE) -> NicBytes:
    """Two nodes: PREFILL sent `rdma` bytes over its NICs, evenly, the node at `to` received them."""
    part, tcp = rdma // nics, kernel // nics
    return NicBytes(
        nics=[
            *(
                Nic(node=f"{PREFILL}:9100", device=f"fabric{n}", rdma_received=0, rdma_transmitted=part)
                for n in range(nics)
            ),
            *(
                Nic(node=f"{to}:9100", device=f"fabric{n}", rdma_received=part, rdma_transmitted=0, kernel_received=tcp)
                for n in range(nics)
            ),
        ],
        received_elsewhere={f"{to}:9100": other},
    )
