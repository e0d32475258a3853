"""Slips in valid configurations: what Ray or vLLM refuse, or pass over, the guards have to find.

Bases are stacks of this repository and configurations of tests/unit/serving/plausible. Ray and vLLM judge a few dozen
slips here; `PD_MI325X_MUTATIONS=300` tries as many as docs/howto/check-a-configuration.md tells of.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from serving.guards.all import GUARDS
from serving.guards.check import check
from serving.guards.read import NothingToCheck, read
from tests.runtime.guard_mutations import Config, Mutation, mutations
from tests.runtime.test_serve_config import answers, rendered
from tests.shell import ROOT

COUNT = int(os.environ.get("PD_MI325X_MUTATIONS", "40"))
PLAUSIBLE = ROOT / "tests" / "unit" / "serving" / "plausible"
RUNS = {"ray": "2.55", "vllm": "0.18"}


def bases() -> dict[str, Config]:
    found: dict[str, Config] = {name: rendered(name) for name in ("local-pd-1p1d", "local-agg-2", "pd-2p1d", "agg-2")}
    for name in ("ray-2-55-pd", "tp4-twice-on-a-node", "autoscaled-router"):
        found[name] = yaml.safe_load((PLAUSIBLE / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def found_in(config: Config) -> set[tuple[str, str]]:
    """Guards with the places at which they find something that is not only a note."""
    try:
        view = read(yaml.safe_dump(config, sort_keys=False), "mutated.yaml", RUNS)
    except NothingToCheck as error:  # `applications` itself is misspelt
        return {("nothing to check", str(error))}
    return {(f.guard.id, f.place.key) for f in check(view, GUARDS) if f.severity != "note"}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Mutation, str | None, bool]]:
    """Each slip with what Ray or vLLM say of it, None where they take it, and whether the guards find something."""
    whole = bases()
    slips = mutations(whole, COUNT)
    cases: dict[str, Any] = {f"base {name}": config for name, config in whole.items()}
    cases |= {f"{number} {slip}": slip.config for number, slip in enumerate(slips)}
    said = answers("mutated_configs.py", cases, tmp_path_factory.mktemp("mutations"))
    assert {name: said[f"base {name}"] for name in whole} == dict.fromkeys(whole), "the bases are valid"
    before = {name: found_in(config) for name, config in whole.items()}
    return [
        (slip, said[f"{number} {slip}"], bool(found_in(slip.config) - before[slip.base]))
        for number, slip in enumerate(slips)
    ]


def test_what_ray_or_vllm_refuse_is_found(judged: list[tuple[Mutation, str | None, bool]]) -> None:
    assert [f"{slip}: {why}" for slip, why, found in judged if why and not found] == []


def test_a_misspelt_key_that_nobody_refuses_is_found(judged: list[tuple[Mutation, str | None, bool]]) -> None:
    ignored = [slip for slip, why, found in judged if why is None and not found and slip.kind.startswith("key with")]
    assert [str(slip) for slip in ignored] == []


def test_the_slips_are_of_every_kind(judged: list[tuple[Mutation, str | None, bool]]) -> None:
    kinds = {slip.kind.split(" ")[0] for slip, _, _ in judged}
    assert {"key", "a"} <= kinds
    assert any(why for _, why, _ in judged)
    assert any(why is None for _, why, _ in judged)
    assert Path(PLAUSIBLE).is_dir()
