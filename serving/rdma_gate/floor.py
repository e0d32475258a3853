"""The bandwidth below which an RDMA path is not believed to be one, when a stack names none."""

from typing import Literal

MemoryKind = Literal["rocm", "cuda", "host"]
BITS_PER_MIB = 2**20 * 8

# Half the line rate. Direct paths lie well above: 388 of 400 Gb/s with ib_write_bw on the hosts of the reference post,
# 47-48 GB/s (376-384 Gb/s) GPU to GPU there. A path that is staged through host memory lies well below: 10-12 GB/s
# (80-96 Gb/s, 24 % at most). The middle between 24 % and 97 % is 48 % on a scale of ratios. The one public run of
# ucx_perftest with ROCm and mlx5 (27,873 MiB/s, 234 Gb/s; its link is not told) would pass at 400 Gb/s, with 58 %.
_FRACTION_OF_LINE_RATE = 0.5

# ucx_perftest moves the memory of one GPU, so all NICs together are held up by that GPU's own link: PCIe 5.0 x16,
# 32 GT/s x 16 lanes x 128/130 (AMD's data sheet of MI325X; NVIDIA's of H100 and H200).
_GPU_LINK_GBPS = 504.0


def mib_to_gbps(mib_per_second: float) -> float:
    """ucx_perftest's "MB/s" are MiB/s (ucx src/tools/perf: bytes / 1024 / 1024); links count in 10^9 bits."""
    return mib_per_second * BITS_PER_MIB / 1e9


def default_floor(link_gbps: float, devices: int, memory: MemoryKind) -> float:
    """The least MiB/s of one ucx_perftest run over `devices` NICs of `link_gbps` (10^9 bits/s) each.

    Raises ValueError for a link without speed, or for no device: a floor of 0 would let everything pass.
    """
    if not link_gbps > 0 or devices < 1:
        raise ValueError(f"no floor for {devices} devices of {link_gbps} Gb/s")
    reachable = link_gbps * devices
    if memory != "host":
        reachable = min(reachable, _GPU_LINK_GBPS)
    return _FRACTION_OF_LINE_RATE * reachable * 1e9 / BITS_PER_MIB
