"""Fixtures: a stand-in service, a target that points at it, a tokenizer of one token per byte, a quick scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_data import scenario_data, target_data
from stand_in_server import StandIn, standing_in

from benchmarks.scenario import Scenario
from benchmarks.target import Target


@pytest.fixture
def service() -> Iterator[StandIn]:
    """A stand-in that behaves well until a test changes its `behaviour`."""
    with standing_in() as server:
        yield server


@pytest.fixture
def target(service: StandIn) -> Target:
    """A pd target that is the stand-in."""
    return Target.model_validate(target_data(service.url))


@pytest.fixture
def scenario() -> Scenario:
    """The smallest scenario that p90 can be judged on."""
    return Scenario.model_validate(scenario_data())


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer directory as Hugging Face keeps it: byte-level BPE without merges, so one token is one byte."""
    folder = tmp_path_factory.mktemp("tokenizer")
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "added_tokens": [],
        "model": {"type": "BPE", "vocab": {char: number for number, char in enumerate(_alphabet())}, "merges": []},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}', encoding="utf-8")
    return folder


def _alphabet() -> list[str]:
    """GPT-2's 256 printable stand-ins for bytes: printable bytes are themselves, the rest follow from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = 256 - len(printable)
    return [chr(code) for code in [*printable, *range(0x100, 0x100 + others)]]
