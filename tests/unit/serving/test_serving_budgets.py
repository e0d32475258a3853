"""A prefill/decode and an aggregated deployment get equal engines, and what a stack file makes unequal is said."""

from typing import Any

import pytest
import yaml
from serving_command import RenderSettings

from serving.engine import budget_differences
from serving.serve_config import ingress_replicas, llm_config
from serving.stack import Stack
from serving.stack_files import load_stack, stack_names
from serving.topology import Role


def _comparable(stack: Stack) -> tuple[object, ...]:
    """Stacks that have the prefix cache on are there for scenarios of their own."""
    role: Role = "prefill" if stack.topology_.disaggregated else "aggregated"
    return stack.model, stack.platform, llm_config(stack, role)["engine_kwargs"]["enable_prefix_caching"]


LOADED = {name: load_stack(name) for name in stack_names()}
PAIRS = [
    (pd, aggregated)
    for pd, a in LOADED.items()
    for aggregated, b in LOADED.items()
    if a.topology_.disaggregated and not b.topology_.disaggregated and _comparable(a) == _comparable(b)
]
QWEN: dict[str, Any] = {
    "model": "qwen3-235b-a22b-fp8",
    "topology": "2p1d",
    "scenario": "qwen-16k-1k",
    "cluster": {"provider": "doks"},
}
NVIDIA = {"provider": "existing", "nodes": {"gpuResource": "nvidia.com/gpu"}}
CUDA = QWEN | {"platform": "cuda", "cluster": NVIDIA}


def budget(stack: Stack, role: Role) -> dict[str, Any]:
    """All that decides what one replica can do, without what makes it a prefill or a decode replica."""
    config = llm_config(stack, role)
    del config["callback_config"]  # ports
    config["engine_kwargs"].pop("kv_transfer_config", None)
    return config


def test_every_prefill_decode_stack_has_an_aggregated_one_to_compare_with() -> None:
    assert {pd for pd, _ in PAIRS} == {name for name, stack in LOADED.items() if stack.topology_.disaggregated}


@pytest.mark.parametrize(("pd", "aggregated"), PAIRS)
def test_shipped_stacks_have_equal_replicas(pd: str, aggregated: str) -> None:
    expected = budget(LOADED[aggregated], "aggregated")
    assert budget(LOADED[pd], "prefill") == expected
    assert budget(LOADED[pd], "decode") == expected


@pytest.mark.parametrize(
    ("pd", "aggregated"), [p for p in PAIRS if len({LOADED[name].topology_.replicas for name in p}) == 1]
)
def test_as_many_replicas_get_as_many_ingress_processes(pd: str, aggregated: str) -> None:
    assert ingress_replicas(LOADED[pd]) == ingress_replicas(LOADED[aggregated])


@pytest.mark.parametrize("name", LOADED)
def test_no_difference_is_reported_where_there_is_none(name: str) -> None:
    stack = LOADED[name]
    assert budget_differences(stack.topology_, stack.model_, stack.platform_, stack.engine) == {}


def test_render_names_each_unequal_budget_and_stays_yaml(render_settings: RenderSettings) -> None:
    engine = {
        "all": {"max_num_seqs": 64},
        "prefill": {"max_num_batched_tokens": 32768, "vllm": {"enable_chunked_prefill": False}},
        "decode": {"max_num_batched_tokens": 4096},
    }
    done = render_settings(QWEN | {"engine": engine})
    assert [line for line in done.stdout.splitlines() if line.startswith("# unequal")] == [
        "# unequal budget enable_chunked_prefill: aggregated None, prefill False",
        "# unequal budget max_num_batched_tokens: aggregated 8192, prefill 32768, decode 4096",
    ]
    args = yaml.safe_load(done.stdout)["applications"][0]["args"]
    assert args["prefill_config"]["engine_kwargs"]["max_num_batched_tokens"] == 32768
    assert args["decode_config"]["engine_kwargs"]["max_num_batched_tokens"] == 4096
    assert {args[f"{role}_config"]["engine_kwargs"]["max_num_seqs"] for role in ("prefill", "decode")} == {64}


def test_override_of_a_role_that_the_topology_lacks_is_refused(render_settings: RenderSettings) -> None:
    done = render_settings(QWEN | {"topology": "agg-3", "engine": {"decode": {"max_num_batched_tokens": 4096}}})
    assert done.returncode != 0
    assert "engine.decode: topology agg-3 has no decode replica" in done.stderr


def test_platform_of_a_stack_decides_its_transports(render_settings: RenderSettings) -> None:
    done = render_settings(CUDA)
    prefill = yaml.safe_load(done.stdout)["applications"][0]["args"]["prefill_config"]
    assert prefill["engine_kwargs"]["tensor_parallel_size"] == 1
    transports = prefill["runtime_env"]["env_vars"]["UCX_TLS"].split(",")
    assert "cuda_ipc" in transports
    assert "tcp" not in transports


@pytest.mark.parametrize("nested", [CUDA, QWEN | {"engine": {"all": {"vllm": {"compilation_config": {"level": 3}}}}}])
def test_roles_with_equal_nested_values_are_printed_without_aliases(
    nested: dict[str, Any], render_settings: RenderSettings
) -> None:
    tokens = list(yaml.scan(render_settings(nested).stdout))
    assert tokens
    assert not [token for token in tokens if isinstance(token, yaml.AnchorToken | yaml.AliasToken)]
