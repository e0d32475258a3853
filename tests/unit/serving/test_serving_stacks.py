"""Every shipped stack file loads, says what its name says, and renders to YAML that a deployment can be made from."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from serving_command import Render

from benchmarks.scenario import Scenario
from benchmarks.scenario_files import load_scenarios
from serving.serve_config import serve_config
from serving.stack_files import load_stack, stack_names
from serving.ucx_transports import TCP, allowed

STACKS = stack_names()
TOPOLOGY_AT_THE_END = re.compile(r"(?:^|-)(agg-\d+|pd-(\d+p\d+d))$")
NAMED_AFTER_TOPOLOGY = [name for name in STACKS if TOPOLOGY_AT_THE_END.search(name)]
ROCM = [name for name in STACKS if load_stack(name).platform == "rocm"]


def llm_configs(name: str) -> list[dict[str, Any]]:
    args = serve_config(load_stack(name))["applications"][0]["args"]
    return args.get("llm_configs") or [args["prefill_config"], args["decode_config"]]


def test_the_promised_stacks_ship() -> None:
    promised = {
        *("pd-1p1d", "pd-2p1d", "pd-1p2d", "pd-1p3d", "pd-2p2d", "agg-2", "agg-3", "agg-4"),
        *("deepseek-pd-1p1d", "deepseek-agg-2", "local-pd-1p1d", "local-agg-2"),
        *("cache-pd-1p2d", "cache-agg-3"),
    }
    assert promised <= set(STACKS)


@pytest.mark.parametrize("name", STACKS)
def test_command_prints_the_serve_config_as_plain_yaml(name: str, render: Render) -> None:
    done = render(name)
    assert (done.returncode, done.stderr) == (0, "")
    assert yaml.safe_load(done.stdout)["applications"] is not None
    # A reader, and not every YAML parser, follows `&id001` and `*id001`.
    tokens = list(yaml.scan(done.stdout))
    assert not [token for token in tokens if isinstance(token, yaml.AnchorToken | yaml.AliasToken)]


def test_the_command_as_typed(checkout: Path) -> None:
    """From a shell: what it prints, and an error in one line with its exit code."""

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "serving", *words]
        return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)

    good = typed("render", "pd-2p1d")
    assert (good.returncode, good.stderr) == (0, "")
    assert yaml.safe_load(good.stdout) == serve_config(load_stack("pd-2p1d"))
    assert "pd-2p1d" in typed("stacks").stdout
    bad = typed("render", "pd-9p9d")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr.startswith("error: stack: no file Pulumi.pd-9p9d.yaml")


@pytest.mark.parametrize("name", STACKS)
def test_yaml_says_what_the_program_deploys(name: str) -> None:
    config = serve_config(load_stack(name))
    assert yaml.safe_load(yaml.safe_dump(config)) == config


@pytest.mark.parametrize("name", STACKS)
def test_scenario_exists(name: str) -> None:
    assert load_stack(name).scenario in load_scenarios()


@pytest.mark.parametrize("name", STACKS)
def test_engine_can_hold_the_scenario(name: str) -> None:
    stack = load_stack(name)
    mine = {stack.scenario, *(scenario.name for scenario in load_scenarios().values() if name in scenario.stacks)}
    for config in llm_configs(name):
        for scenario in mine:
            assert config["engine_kwargs"]["max_model_len"] >= sum(load_scenarios()[scenario].longest)


@pytest.mark.parametrize("name", STACKS)
def test_prompts_that_share_a_prefix_meet_a_prefix_cache(name: str) -> None:
    stack = load_stack(name)
    named = [scenario for scenario in load_scenarios().values() if name in scenario.stacks]
    assert stack.scenario in {scenario.name for scenario in named}
    for config in llm_configs(name):
        shares = {scenario.prefix_hit_rate > 0 for scenario in named}
        assert shares == {config["engine_kwargs"]["enable_prefix_caching"]}


@pytest.mark.parametrize("scenario", load_scenarios().values(), ids=lambda scenario: scenario.name)
def test_a_scenario_compares_both_ways_of_one_model_on_as_many_gpus(scenario: Scenario) -> None:
    stacks = [load_stack(name) for name in scenario.stacks]
    assert len({stack.model for stack in stacks}) == 1
    ways = [{s.gpus for s in stacks if s.topology_.disaggregated is way} for way in (True, False)]
    assert ways[0] == ways[1]


@pytest.mark.parametrize("name", NAMED_AFTER_TOPOLOGY)
def test_name_says_the_topology(name: str) -> None:
    match = TOPOLOGY_AT_THE_END.search(name)
    assert match is not None
    assert load_stack(name).topology == (match[2] or match[1])


@pytest.mark.parametrize("name", STACKS)
def test_replica_counts_are_those_of_the_topology(name: str) -> None:
    stack = load_stack(name)
    counts = {d["name"]: d["num_replicas"] for d in serve_config(stack)["applications"][0]["deployments"]}
    ingress = counts.pop("OpenAiIngress")
    assert ingress >= 1
    assert {key.split(":")[0]: n for key, n in counts.items()} == {
        {"prefill": "Prefill", "decode": "Decode", "aggregated": "LLMServer"}[role]: n
        for role, n in stack.topology_.roles.items()
    }


@pytest.mark.parametrize("name", STACKS)
def test_kv_moves_in_prefill_decode_stacks_and_only_there(name: str) -> None:
    disaggregated = load_stack(name).topology_.disaggregated
    for config in llm_configs(name):
        transfer = config["engine_kwargs"].get("kv_transfer_config")
        assert (transfer is not None) == disaggregated
        # `recompute` would hide a failed transfer behind a correct answer.
        assert transfer is None or transfer["kv_load_failure_policy"] == "fail"


@pytest.mark.parametrize("name", ROCM)
def test_replica_on_rocm_asks_for_gpus_and_cannot_fall_back_to_tcp(name: str) -> None:
    for config in llm_configs(name):
        # Ray silently builds a CPU engine from an AMD accelerator type alone.
        assert config["accelerator_type"].startswith("AMD-")
        assert config["placement_group_config"]["bundle_per_worker"]["GPU"] == 1
        assert config["placement_group_config"]["strategy"] == "STRICT_PACK"
        assert not allowed(config["runtime_env"]["env_vars"]["UCX_TLS"]) & TCP


@pytest.mark.parametrize("name", STACKS)
def test_anyscale_format_is_the_same_application_as_a_service(name: str, render: Render) -> None:
    done = render(name, "--format", "anyscale")
    assert (done.returncode, done.stderr) == (0, "")
    service = yaml.safe_load(done.stdout)
    # Anyscale owns the proxies: `proxy_location` and `http_options` are not keys of its service.
    assert service == {"name": name, "applications": serve_config(load_stack(name))["applications"]}
