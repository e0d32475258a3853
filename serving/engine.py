"""vLLM engine arguments of one role.

Every role of every topology gets the same budgets (context, batch, sequences, memory, block size), so that a
disaggregated and an aggregated deployment differ in how they are arranged and in nothing else. A stack file may change
them for all roles or for one; `budget_differences` says where that made the roles unequal.
"""

from copy import deepcopy
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from serving.errors import ConfigError
from serving.models import Model
from serving.platforms import Platform
from serving.topology import Role, Topology

KV_CONNECTOR = "NixlConnector"
_NOT_A_CHOICE = {"kv_transfer_config": "topology", "tensor_parallel_size": "platform", "model": "stack's key model"}


class EngineArguments(BaseModel):
    """vLLM arguments a stack file may set; the names are vLLM's own. Unset ones keep the default of this repository."""

    model_config = ConfigDict(extra="forbid", strict=True)

    max_model_len: int | None = Field(default=None, gt=0, description="longest prompt plus answer, tokens")
    max_num_batched_tokens: int | None = Field(default=None, gt=0, description="tokens one engine step may compute")
    max_num_seqs: int | None = Field(default=None, gt=0, description="requests one engine step may hold")
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    block_size: int | None = Field(default=None, gt=0, description="KV block, tokens")
    enable_prefix_caching: bool | None = None
    enforce_eager: bool | None = None
    load_format: str | None = None
    kv_cache_dtype: str | None = None
    vllm: dict[str, Any] = Field(default_factory=dict, description="any other vLLM argument, passed on unchecked")

    @model_validator(mode="after")
    def _nothing_twice(self) -> "EngineArguments":
        for key in self.vllm:
            name = key.replace("-", "_")  # as the option of `vllm serve`
            if name in _NOT_A_CHOICE:
                raise ConfigError(f"engine.*.vllm.{key}", f"follows from the {_NOT_A_CHOICE[name]}", "remove it")
            if name in EngineArguments.model_fields:
                raise ConfigError(
                    f"engine.*.vllm.{key}", "has a key of its own", f"write {name} beside vllm, not in it"
                )
            if key != name:
                raise ConfigError(f"engine.*.vllm.{key}", "is an option of vLLM's command line", f"write {name}")
        return self

    def given(self) -> dict[str, Any]:
        """The arguments that were set, as vLLM keyword arguments."""
        return {**self.model_dump(exclude_none=True, exclude={"vllm"}), **self.vllm}


class EngineSettings(BaseModel):
    """Overrides for all roles, then for one role."""

    model_config = ConfigDict(extra="forbid")

    all: EngineArguments = Field(default_factory=EngineArguments)
    prefill: EngineArguments = Field(default_factory=EngineArguments)
    decode: EngineArguments = Field(default_factory=EngineArguments)
    aggregated: EngineArguments = Field(default_factory=EngineArguments)


def engine_arguments(role: Role, model: Model, platform: Platform, settings: EngineSettings) -> dict[str, Any]:
    """Keyword arguments of vLLM's AsyncEngineArgs for one role, `kv_transfer_config` included where KV moves."""
    arguments: dict[str, Any] = {
        "tensor_parallel_size": platform.tensor_parallel_size,
        "max_model_len": min(model.max_model_len, 40960),  # the longest shipped scenario is 16K in, 4K out
        # vLLM's own server default, which the reference post reasons from. Its runs gave prefill and the aggregated
        # baseline 32768 and decode 4096: unequal, so not repeated here.
        "max_num_batched_tokens": 8192,
        "max_num_seqs": 256,
        "block_size": platform.block_size,
        "kv_cache_dtype": "fp8" if platform.kv_dtype == "fp8" else "auto",
        "enable_prefix_caching": False,  # unless the scenario measures it: a warm cache flatters whoever ran second
    }
    if platform.gpus_per_replica:
        arguments["gpu_memory_utilization"] = 0.85
    if model.mixture_of_experts and platform.gpus_per_replica > 1:
        arguments["enable_expert_parallel"] = True
    if model.repository is None:
        arguments["load_format"] = "dummy"  # no weights exist; vLLM's dummy weights are the same in every replica
    arguments |= platform.engine
    arguments |= settings.all.given()
    arguments |= getattr(settings, role).given()
    if role != "aggregated":
        arguments["kv_transfer_config"] = {
            "kv_connector": KV_CONNECTOR,
            "kv_role": "kv_both",  # vLLM 0.18 refuses to start without a role and NIXL ignores which
            # `recompute` would answer from a prompt computed twice and look like working PD.
            "kv_load_failure_policy": "fail",
            **platform.kv_transfer,
        }
    return deepcopy(arguments)  # roles that share a nested value would be printed as YAML anchors and aliases


def budget_differences(
    topology: Topology, model: Model, platform: Platform, settings: EngineSettings
) -> dict[str, dict[str, Any]]:
    """Arguments that differ from those of an aggregated replica of the same stack: argument -> role -> value.

    Empty when the stack can be compared with its aggregated counterpart at equal budgets.
    """
    baseline = engine_arguments("aggregated", model, platform, settings)
    differences: dict[str, dict[str, Any]] = {}
    for role in topology.roles:
        arguments = engine_arguments(role, model, platform, settings)
        for key in sorted((baseline.keys() | arguments.keys()) - {"kv_transfer_config"}):
            if arguments.get(key) != baseline.get(key):
                entry = differences.setdefault(key, {"aggregated": baseline.get(key)})
                entry[role] = arguments.get(key)
    return differences
