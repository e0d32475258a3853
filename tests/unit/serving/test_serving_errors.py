"""Bad stack files: one line that names the key and says what to do, exit code not 0, no traceback."""

from typing import Any

import pytest
from serving_command import QWEN, Render, RenderSettings, assert_blames, one_line

REHEARSAL: dict[str, Any] = {
    "model": "rehearsal-qwen3-moe",
    "topology": "1p1d",
    "scenario": "rehearsal",
    "platform": "cpu",
    "target": "ray",
    "cluster": {"provider": "local"},
}
RAY = {"address": "https://ray.example.com:8265", "serviceUrl": "https://serve.example.com"}


def without(settings: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in keys}


# case -> settings, the key the line must blame, what else it must say
CASES: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "unknown key": (QWEN | {"topolgy": "1p1d"}, "topolgy", ["unknown key", "topology", "ingressReplicas"]),
    "snake case": (QWEN | {"ingress_replicas": 4}, "ingress_replicas", ["unknown key", "ingressReplicas"]),
    "unknown nested key": (
        QWEN | {"cluster": {"provider": "doks", "regoin": "atl1"}},
        "cluster.regoin",
        ["unknown key", "provider", "region"],
    ),
    "unknown engine role": (QWEN | {"engine": {"prefil": {}}}, "engine.prefil", ["prefill", "aggregated"]),
    "unknown engine argument": (
        QWEN | {"engine": {"decode": {"max_num_seq": 8}}},
        "engine.decode.max_num_seq",
        ["unknown key", "max_num_seqs"],
    ),
    "unknown ray key": (
        without(REHEARSAL, "cluster") | {"ray": {**RAY, "token": "x"}},
        "ray.token",
        ["unknown key", "tokenFile"],
    ),
    "no model": (without(QWEN, "model"), "model", ["is required"]),
    "no scenario": (without(QWEN, "scenario"), "scenario", ["is required"]),
    "no decode": (QWEN | {"topology": "2p0d"}, "topology", ["no decode replica", "1p1d"]),
    "no prefill": (QWEN | {"topology": "0p1d"}, "topology", ["no prefill replica", "agg-2"]),
    "no aggregated": (QWEN | {"topology": "agg-0"}, "topology", ["'agg-0'", "agg-3"]),
    "topology as a number": (QWEN | {"topology": 2}, "topology", ["string", "2"]),
    "topology with more behind it": (QWEN | {"topology": "2p1d2"}, "topology", ["'2p1d2'"]),
    "unknown model": (QWEN | {"model": "qwen4"}, "model", ["'qwen4'", "qwen3-235b-a22b-fp8", "deepseek-v3-0324"]),
    "unknown platform": (QWEN | {"platform": "tpu"}, "platform", ["'rocm'", "'tpu'"]),
    "rehearsal model on GPUs": (QWEN | {"model": "rehearsal-qwen3-moe"}, "platform", ["set platform: cpu"]),
    "ray without a cluster": (without(REHEARSAL, "cluster"), "target", ["ray.address", "cluster.provider: local"]),
    "ray with two clusters": (REHEARSAL | {"ray": RAY}, "target", ["exactly one"]),
    "ray without its address": (
        without(REHEARSAL, "cluster") | {"ray": without(RAY, "address")},
        "ray.address",
        ["is required"],
    ),
    "ray address without a scheme": (
        without(REHEARSAL, "cluster") | {"ray": RAY | {"address": "ray.example.com:8265"}},
        "ray.address",
        ["ray.example.com:8265"],
    ),
    "ray under kubernetes": (QWEN | {"ray": RAY}, "ray", ["set target: ray"]),
    "kubernetes without nodes": (without(QWEN, "cluster"), "cluster", ["doks", "existing", "stack"]),
    "kubernetes on the local head": (QWEN | {"cluster": {"provider": "local"}}, "cluster", ["doks"]),
    "another stack, but doks": (
        QWEN | {"cluster": {"provider": "doks", "stack": "mi325x-4node"}},
        "cluster.stack",
        ["unknown key", "region"],
    ),
    "provider stack, but which": (QWEN | {"cluster": {"provider": "stack"}}, "cluster.stack", ["is required"]),
    "port below": (REHEARSAL | {"cluster": {"provider": "local", "portBase": 80}}, "cluster.portBase", ["1024", "80"]),
    "port above": (
        REHEARSAL | {"cluster": {"provider": "local", "portBase": 32001}},
        "cluster.portBase",
        ["32000", "32001"],
    ),
    "context beyond the model": (
        QWEN | {"engine": {"all": {"max_model_len": 40961}}},
        "engine.all.max_model_len",
        ["40961", "40960"],
    ),
    "context of one role beyond the model": (
        QWEN | {"engine": {"decode": {"max_model_len": 40961}}},
        "engine.decode.max_model_len",
        ["40961", "40960"],
    ),
    "no ingress": (QWEN | {"ingressReplicas": 0}, "ingressReplicas", ["greater than 0"]),
}
FILES = {
    "a list": "- model\n",
    "a word": "model\n",
    "settings that are a list": "config:\n- pd-mi325x:model\n",
    "not YAML": "config: {\n  pd-mi325x:model: [\n",
}


@pytest.mark.parametrize("case", CASES)
def test_bad_setting(case: str, render_settings: RenderSettings) -> None:
    settings, key, parts = CASES[case]
    assert_blames(render_settings(settings), key, parts)


@pytest.mark.parametrize("settings", [QWEN, REHEARSAL, without(REHEARSAL, "cluster") | {"ray": RAY}])
def test_the_settings_that_the_cases_spoil_are_good(settings: dict[str, Any], render_settings: RenderSettings) -> None:
    assert render_settings(settings).returncode == 0


@pytest.mark.parametrize("case", FILES)
def test_file_that_is_no_stack_file(case: str, render_settings: RenderSettings) -> None:
    assert one_line(render_settings(FILES[case])).startswith("Pulumi.under-test.yaml: is not ")


def test_empty_file_says_what_is_missing(render_settings: RenderSettings) -> None:
    assert one_line(render_settings("")) == "model: is required"


def test_unknown_stack_lists_the_known_ones(render: Render) -> None:
    line = one_line(render("pd-9p9d"))
    assert line.startswith("stack: no file Pulumi.pd-9p9d.yaml")
    assert "pd-2p1d" in line
