"""How NICs can reach GPU memory on a node: by dma-buf, by peer memory, or not."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from serving.fabric.findings import Finding, error, note, warning
from serving.fabric.kernel import DMABUF_OPTIONS
from serving.fabric.node import NodeFabric

Method = Literal["dma-buf", "peer-memory", "none", "unknown"]


class GpuDirect(BaseModel):
    """method: `unknown` when the kernel's options are not visible, so that nothing can be said."""

    model_config = ConfigDict(frozen=True)

    method: Method
    reason: str


def gpu_direct(fabric: NodeFabric) -> GpuDirect:
    """What UCX up to 1.22 can use, the pinned commit included.

    dma-buf first: the ROCm platform asks for it, and peer memory is gone from most kernels after 6.0 (openucx #11957).
    UCX takes the kernel's options from /boot/config-RELEASE and from nowhere else (ucx: rocm_base.c).
    """
    kernel = fabric.kernel
    missing = [name for name in DMABUF_OPTIONS if not kernel.options.get(name)]
    where = f"{kernel.config_source}/config-{kernel.release}" if kernel.config_source == "/boot" else "/proc/config.gz"
    if not fabric.gpus.gpus:
        return GpuDirect(method="none", reason="no AMD GPU found")
    if kernel.dmabuf and kernel.config_source == "/boot":
        return GpuDirect(method="dma-buf", reason=f"{' and '.join(DMABUF_OPTIONS)} in {where}")
    if kernel.peer_memory:
        seen = "amdgpu is registered" if kernel.peer_memory_client else "whether amdgpu registered is not visible"
        return GpuDirect(method="peer-memory", reason=f"the RDMA core has ib_register_peer_memory_client; {seen}")
    if kernel.dmabuf is None:
        return GpuDirect(method="unknown", reason=f"/boot/config-{kernel.release} is not visible, nor /proc/config.gz")
    if kernel.dmabuf:
        reason = f"the kernel has dma-buf ({where}), but UCX looks in /boot/config-{kernel.release}, not visible here"
        return GpuDirect(method="unknown", reason=reason)
    return GpuDirect(method="none", reason=f"no {' and no '.join(missing)} in {where}, and no peer memory")


def gpu_direct_findings(fabric: NodeFabric, found: GpuDirect) -> list[Finding]:
    if not fabric.gpus.gpus:
        return [note("no-gpu", "no AMD GPU found on this node (KFD topology)", "load amdgpu, if it has GPUs")]
    if found.method == "none":
        fix = (
            "boot a kernel with both options, or with peer memory; or take copies through host memory into account and"
            " set UCX_ROCM_COPY_DMABUF=n (the platform's y does not open GPU memory at all here)"
        )
        return [error("gpu-direct", f"NICs cannot reach GPU memory: {found.reason}", fix)]
    if found.method == "unknown":
        fix = "mount the node's /boot, read-only, where this and the engines run, with the file in it"
        return [warning("gpu-direct", f"whether NICs reach GPU memory is not known: {found.reason}", fix)]
    return []
