"""What of the kernel decides whether NICs reach GPU memory, and what a process may pin."""

import gzip
import re
import zlib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from serving.fabric.files import integer, text

# The first two are what UCX asks for (ucx: rocm_base.c); AMD's IOMMU page names all three (siderolabs/pkgs #1488).
DMABUF_OPTIONS = ("CONFIG_DMABUF_MOVE_NOTIFY", "CONFIG_PCI_P2PDMA")
OPTIONS = (*DMABUF_OPTIONS, "CONFIG_HSA_AMD_P2P")
# Where drivers of GPU memory show themselves; the place moved between kernels (RCCL's InfiniBand code tries the same).
_MEMORY_PEERS = ("sys/kernel/mm/memory_peers", "sys/kernel/memory_peers", "sys/memory_peers")
_CAP_IPC_LOCK = 1 << 14  # include/uapi/linux/capability.h
_SYMBOL = b"ib_register_peer_memory_client"


class Kernel(BaseModel):
    """config_source: the file that `options` were read from, without the root; None: no such file is visible here.

    options: kernel option -> whether it is built in (`y`). peer_memory: whether the RDMA core has peer memory.
    peer_memory_client: whether amdgpu is seen to be registered with it. iommu_passthrough: `iommu=pt` on the command
    line. memlock: bytes that the process which read this may pin, None without a limit. ipc_lock: whether it may pin
    any number. amdgpu, rocm: versions, None where not found.
    """

    model_config = ConfigDict(frozen=True)

    release: str | None = None
    config_source: Literal["/boot", "/proc/config.gz"] | None = None
    options: dict[str, bool] = {}
    peer_memory: bool = False
    peer_memory_client: bool = False
    amdgpu: str | None = None
    rocm: str | None = None
    numa_balancing: bool | None = None
    iommu_passthrough: bool = False
    memlock: int | None = None
    ipc_lock: bool = False

    @property
    def dmabuf(self) -> bool | None:
        """Whether the kernel can hand GPU memory to a NIC as a dma-buf; None when its options are not visible."""
        return all(self.options[name] for name in DMABUF_OPTIONS) if self.config_source else None

    @property
    def may_pin(self) -> bool:
        return self.ipc_lock or self.memlock is None


def read_kernel(root: Path) -> Kernel:
    release = text(root / "proc/sys/kernel/osrelease")
    source, config = _config(root, release)
    clients = [folder for path in _MEMORY_PEERS if (folder := root / path).is_dir()]
    balancing = integer(root / "proc/sys/kernel/numa_balancing")
    return Kernel(
        release=release,
        config_source=source,
        options={name: bool(re.search(rf"^{name}=y$", config, re.MULTILINE)) for name in OPTIONS} if source else {},
        peer_memory=bool(clients) or _has_symbol(root / "proc/kallsyms"),
        peer_memory_client=any((folder / "amdkfd").exists() for folder in clients),
        amdgpu=text(root / "sys/module/amdgpu/version"),
        rocm=text(root / "opt/rocm/.info/version"),
        numa_balancing=None if balancing is None else balancing > 0,
        iommu_passthrough="iommu=pt" in (text(root / "proc/cmdline") or "").split(),
        memlock=_memlock(text(root / "proc/self/limits") or ""),
        ipc_lock=_has_ipc_lock(text(root / "proc/self/status") or ""),
    )


def _config(root: Path, release: str | None) -> tuple[Literal["/boot", "/proc/config.gz"] | None, str]:
    if release and (config := text(root / f"boot/config-{release}")):
        return "/boot", config
    try:
        return "/proc/config.gz", gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    except (OSError, EOFError, zlib.error):  # damaged, which gzip tells by each of them
        return None, ""


def _has_symbol(kallsyms: Path) -> bool:
    try:
        with kallsyms.open("rb") as lines:  # over 100,000 of them
            return any(_SYMBOL in line for line in lines)
    except OSError:
        return False


def _memlock(limits: str) -> int | None:
    """The soft limit of `Max locked memory`; 0 when there is nothing to read it from, so that it never seems enough."""
    found = re.search(r"^Max locked memory\s+(\S+)", limits, re.MULTILINE)
    if found is None:
        return 0
    return None if found.group(1) == "unlimited" else int(found.group(1))


def _has_ipc_lock(status: str) -> bool:
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return bool(found and int(found.group(1), 16) & _CAP_IPC_LOCK)
