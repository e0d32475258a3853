"""What differs between ROCm, CUDA and CPU. Nothing else in this package asks which platform it is on."""

from dataclasses import dataclass, field
from typing import Any, Literal

from serving.kv_bytes import KvDtype

PlatformName = Literal["rocm", "cuda", "cpu"]


@dataclass(frozen=True)
class Platform:
    """One kind of accelerator, for the versions pinned in versions.toml under [platform.<name>].

    gpus_per_replica: tensor parallel size; 0 means a CPU replica. resources: LLMConfig keys that decide on which
    resources a replica runs. environment: variables of every engine process. engine: vLLM arguments that only this
    platform needs. kv_transfer: keys added to kv_transfer_config. block_size: KV block size in tokens. shared_memory:
    size of /dev/shm in a pod. object_store: bytes of it for Ray. capabilities: Linux capabilities of an engine
    container, which then runs as root. host_paths: directories of the node that an engine container reads, mounted
    where they are.
    """

    name: PlatformName
    gpus_per_replica: int
    resources: dict[str, Any]
    environment: dict[str, str]
    block_size: int
    kv_dtype: KvDtype
    shared_memory: str
    object_store: int
    engine: dict[str, Any] = field(default_factory=dict)
    kv_transfer: dict[str, Any] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()
    host_paths: tuple[str, ...] = ()

    @property
    def tensor_parallel_size(self) -> int:
        return max(1, self.gpus_per_replica)


# KV block size. The decode worker posts the NIXL read inside its own step, one descriptor per block, layer and K/V. At
# 16 tokens a prompt of 8,192 is 40,960 descriptors and posting them stalled every decode for 0.1 to 0.2 s; at 128 it is
# 5,120 and 16 ms (measured: Qwen3-14B shape, 2 x H200, vLLM 0.25). On ROCm with vLLM 0.18 the AITER attention
# backends have kernel blocks of 16 or 32 tokens (MLA: 1), and NIXL registers kernel blocks, so the gain there is
# smaller: `rocm_aiter_fa.py` get_supported_kernel_block_sizes, `nixl_connector.py` select_common_block_size (read).
_LARGE_KV_BLOCK = 128

# What Oracle's MI300X manifests give an engine of eight ranks (oci-hpc-oke); Ray's object store lies there as well.
_GPU_SHARED_MEMORY = "128Gi"
# Requests and answers pass through Ray's object store, KV does not. Ray's default, 30 % of a node's memory, would be
# more than /dev/shm holds, and Ray then falls back to files. An eighth of /dev/shm is a choice, not measured: the 256
# longest prompts that an engine holds (40,960 tokens, some 5 bytes each) are 50 MB; ranks use the rest.
_GPU_OBJECT_STORE = 16 * 1024**3

ROCM = Platform(
    name="rocm",
    gpus_per_replica=8,  # a replica is a whole node: 8 GPUs and its 8 NICs
    resources={
        "accelerator_type": "AMD-Instinct-MI325X-OAM",
        # Ray 2.55 silently builds a CPU engine for an AMD accelerator type unless the bundle asks for a GPU
        # (vllm_models.py). One bundle per worker, all on one node.
        "placement_group_config": {"bundle_per_worker": {"CPU": 1, "GPU": 1}, "strategy": "STRICT_PACK"},
    },
    environment={
        "VLLM_ROCM_USE_AITER": "1",
        "VLLM_ROCM_USE_AITER_MOE": "1",
        "SAFETENSORS_FAST_GPU": "1",
        # No tcp: a transfer that cannot use RDMA must fail, not crawl. rocm_copy is needed to reach GPU memory at all.
        "UCX_TLS": "rc,sm,self,rocm_copy,rocm_ipc",
        # UCX <= 1.22 leaves GPU-direct through dma-buf off by default on ROCm, and peer memory is gone from kernels
        # after 6.0 (openucx #11957). `y` is loud where it cannot work; `try` would be silent.
        "UCX_ROCM_COPY_DMABUF": "y",
        # UCX_NET_DEVICES is not set here: names of devices differ between clouds. The nodes tell them (infra/
        # fabric_inspector.py), or cluster.nodes.environment does; without either UCX chooses among all.
    },
    block_size=_LARGE_KV_BLOCK,
    kv_dtype="fp8",
    shared_memory=_GPU_SHARED_MEMORY,
    object_store=_GPU_OBJECT_STORE,
    # IPC_LOCK: RDMA pins memory. SYS_PTRACE: ranks of a replica read each other's memory (UCX sm over CMA, ROCm IPC).
    # Not `privileged`, as the reference post has it: the device plugins hand over /dev/kfd, /dev/dri and
    # /dev/infiniband. That this is enough is inferred, and has not run on hardware.
    capabilities=("IPC_LOCK", "SYS_PTRACE"),
    # UCX <= 1.22 looks for the kernel's dma-buf options in /boot/config-$(uname -r) only (ucx: rocm_base.c), and a
    # container has no /boot: without it GPU-direct RDMA counts as not supported.
    host_paths=("/boot",),
)

CUDA = Platform(
    name="cuda",
    gpus_per_replica=1,
    resources={"placement_group_config": {"bundle_per_worker": {"CPU": 1, "GPU": 1}, "strategy": "STRICT_PACK"}},
    environment={
        "UCX_TLS": "rc,sm,self,cuda_copy,cuda_ipc",
        "VLLM_USE_FLASHINFER_SAMPLER": "0",  # flashinfer is not part of the pinned environment
    },
    block_size=_LARGE_KV_BLOCK,
    kv_dtype="bfloat16",
    shared_memory=_GPU_SHARED_MEMORY,
    object_store=_GPU_OBJECT_STORE,
    capabilities=("IPC_LOCK",),
    # vLLM 0.25: prefill frees KV blocks when the lease ends and decode only logs it; 30 s is too short under load.
    kv_transfer={"kv_connector_extra_config": {"kv_lease_duration": 300}},
)

CPU = Platform(
    name="cpu",
    gpus_per_replica=0,
    resources={"use_cpu": True, "placement_group_config": {"bundles": [{"CPU": 1}]}},
    environment={
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; 4,096 tokens of the rehearsal model are 4 MiB
        # No sm: UCX would read the other engine's memory through the kernel (cma), and no KV would go over a network
        # (seen in UCX's protocol table, two NIXL agents on one host). TCP costs 1 to 2 ms more a transfer there.
        "UCX_TLS": "tcp,self",
        "PD_NIXL_PROGRESS_DELAY_US": "1000",  # serving/replica/nixl_progress.py: else each idle engine burns a core
    },
    block_size=_LARGE_KV_BLOCK,
    kv_dtype="bfloat16",
    shared_memory="1Gi",
    object_store=256 * 1024**2,
    kv_transfer={"kv_buffer_device": "cpu"},
)

PLATFORMS: dict[PlatformName, Platform] = {platform.name: platform for platform in (ROCM, CUDA, CPU)}
