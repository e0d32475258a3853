"""Ray Serve LLM callback of every engine replica: its own ports, core and compile caches, and exact KV counters.

Named in the Serve config as `callback_config.callback_class`. Ray Serve LLM 2.55 to 2.57 call `on_before_node_init` in
the replica process before vLLM's config is built.
"""

import os
from pathlib import Path
from typing import Any

from ray import serve
from ray.llm._internal.common.callbacks.base import CallbackBase

from serving.replica import kv_counters, stack_info


class ReplicaCallback(CallbackBase):
    """Keyword arguments (`callback_kwargs`): side_channel_port_base (int), first_core (int; left out: not pinned)."""

    async def on_before_node_init(self) -> None:
        context = serve.get_replica_context()
        rank = context.rank.rank
        variables = replica_environment(
            deployment=context.deployment,
            rank=rank,
            width=self.llm_config.get_engine_config().num_devices,
            cache_root=Path(os.environ.get("VLLM_CACHE_ROOT", Path.home() / ".cache" / "vllm")),
            **self.kwargs,
        )
        os.environ.update(variables)
        # Ray builds the vLLM config, and starts the workers, in other processes: they read the runtime environment.
        runtime_env = self.ctx.runtime_env or {}
        runtime_env["env_vars"] = {**runtime_env.get("env_vars", {}), **variables}
        self.ctx.runtime_env = runtime_env
        stack_info.install()
        if "kv_transfer_config" in self.llm_config.engine_kwargs:
            kv_counters.install(
                deployment=context.deployment,
                replica=context.replica_id.unique_id,
                transports={**os.environ, **runtime_env["env_vars"]}.get("UCX_TLS", "all"),  # UCX's own default
            )


def replica_environment(
    deployment: str,
    rank: int,
    width: int,
    cache_root: Path,
    side_channel_port_base: int,
    first_core: int | None = None,
) -> dict[str, str]:
    """Environment variables that must differ between replicas. `width`: devices, so ports, one replica takes."""
    cache = cache_root / deployment.replace(":", "-") / str(rank)
    variables: dict[str, Any] = {
        # Ray 2.55 computes the replica's offset from its rank and fails silently, so that all replicas of a node
        # share one port; the bind error then hangs the start (facts: ray kv_transfer/base.py, ray#58473).
        "VLLM_NIXL_SIDE_CHANNEL_PORT": side_channel_port_base + rank * width,
        # vLLM looks for a TCPStore port upward from this; replicas that start together meet at the default (0).
        "VLLM_DP_MASTER_PORT": side_channel_port_base + 50 + rank,
        # A torch.compile artifact shared between replicas failed with "invalid argument" on CUDA.
        "VLLM_CACHE_ROOT": cache / "vllm",
        "TORCHINDUCTOR_CACHE_DIR": cache / "inductor",
        "TRITON_CACHE_DIR": cache / "triton",
    }
    if first_core is not None:
        variables["VLLM_CPU_OMP_THREADS_BIND"] = (first_core + rank) % (os.cpu_count() or 1)
    return {name: str(value) for name, value in variables.items()}
