"""Quantities of the Kubernetes API, through the settings that take them."""

import math
from decimal import Decimal
from typing import Any

import pytest
from serving_command import QWEN

from serving.amounts import amount
from serving.errors import ConfigError
from serving.stack import Stack, parse_stack

# Suffix -> what one of it is (apimachinery pkg/api/resource/quantity.go).
SUFFIXES = {
    "": 1,
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("0.001"),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
    "e3": 1000,
    "E3": 1000,
    "e+3": 1000,
    "e-3": Decimal("0.001"),
}


def sized(size: Any) -> Stack:
    return parse_stack(QWEN | {"results": {"size": size}})


def on_nodes(**nodes: Any) -> Stack:
    return parse_stack(QWEN | {"cluster": {"provider": "doks", "nodes": nodes}})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix(suffix: str) -> None:
    """1Gi in each unit is a size, a little less is none."""
    factor = Decimal(SUFFIXES[suffix])
    enough = max(1, math.ceil(2**30 / factor))
    assert amount(f"{enough}{suffix}") == enough * factor
    if enough * factor > 64 * 2**40:
        with pytest.raises(ConfigError, match=r"^results\.size: is more than 64Ti"):
            sized(f"{enough}{suffix}")
    else:
        assert sized(f"{enough}{suffix}").results.size == f"{enough}{suffix}"
    little = "0.5" if factor >= 2**30 else "1"
    if Decimal(little) * factor < 2**30:
        with pytest.raises(ConfigError, match=r"^results\.size: is less than 1Gi; a number without a unit is bytes"):
            sized(f"{little}{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_none_in_every_unit(suffix: str) -> None:
    with pytest.raises(ConfigError, match=r"^results\.size: has to be more than 0"):
        sized(f"0{suffix}")


@pytest.mark.parametrize(
    "text", ["1ki", "1KI", "1K", "1e", "1GB", "1e3Gi", "1 Gi", "-1Gi", "", "Gi", "1.Gi", "1e999", "٣Gi"]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^results\.size: has to be a quantity of Kubernetes"):
        sized(text)


@pytest.mark.parametrize("cpus", ["1m", "0.5", "1500m", "96", "1e2", "1k", "1024", "4000000000n", "4000000u"])
def test_cpus(cpus: str) -> None:
    assert on_nodes(engineCpu=cpus, headCpu=cpus).profile.engine_cpu == cpus


@pytest.mark.parametrize("key", ["engineCpu", "headCpu"])
@pytest.mark.parametrize(
    ("cpus", "words"), [("96Gi", "binary unit"), ("1Ki", "binary unit"), ("1025", "1024"), ("2k", "1024"), ("1u", "1m")]
)
def test_what_are_no_cpus(key: str, cpus: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refusal:
        on_nodes(**{key: cpus})
    assert refusal.value.key == f"cluster.nodes.{key}"


@pytest.mark.parametrize("key", ["engineMemory", "headMemory"])
@pytest.mark.parametrize("memory", [1062, "1062", "1Ki", "1000Mi", "1e3"])
def test_memory_whose_unit_was_forgotten(key: str, memory: Any) -> None:
    with pytest.raises(ConfigError, match="a number without a unit is bytes") as refusal:
        on_nodes(**{key: memory})
    assert refusal.value.key == f"cluster.nodes.{key}"


def test_weights_whose_unit_was_forgotten() -> None:
    weights = {"mode": "nfs", "revision": "a" * 40, "nfs": {"server": "s", "path": "/e"}}
    assert parse_stack(QWEN | {"weights": {**weights, "size": "1Gi"}})
    with pytest.raises(ConfigError, match=r"^weights\.size: is less than 1Gi"):
        parse_stack(QWEN | {"weights": {**weights, "size": "1536"}})
