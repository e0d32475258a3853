"""docs/reference/configuration.md names every key that a stack file can have, and no other.

A key is documented where it stands: in the first column of a table, under a heading that names the object it is in.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from serving.cluster import NodePoolStack
from serving.engine import EngineArguments
from serving.node_profiles import NodeProfile
from serving.stack import Stack

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "configuration.md"
OBJECTS_NAMED_ELSEWHERE = {"cluster.nodes": NodeProfile}  # a dict in the settings: serving/cluster.py checks it itself


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The settings classes that a field may hold: through Optional, unions, lists and Annotated."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Union, UnionType, Annotated, list):
        for part in get_args(annotation):
            yield from models_in(part)


def keys(settings: type[BaseModel], place: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key with its place, as a stack file writes it: `cluster.nodes.engineCpu`. Roles of an engine are `*`."""
    for name, field in settings.model_fields.items():
        key = f"{place}{field.alias or name}"
        yield key, field
        for model in models_in(field.annotation):
            yield from keys(model, "engine.*." if model is EngineArguments else f"{key}.")
        if key in OBJECTS_NAMED_ELSEWHERE:
            yield from keys(OBJECTS_NAMED_ELSEWHERE[key], f"{key}.")


SETTINGS = {key: field for root in (NodePoolStack, Stack) for key, field in keys(root)}


def documented(text: str) -> dict[str, str]:
    """Key -> the cell with its default, for the tables under a heading `like this` or the one for the top level."""
    found: dict[str, str] = {}
    place: str | None = None
    for line in text.splitlines():
        if line.startswith("#"):
            name = re.search(r"`([^`]+)`", line)
            place = f"{name[1]}." if name else "" if line == "## Top level" else None
        elif place is not None and (cells := re.findall(r"\|([^|]*)(?=\|)", line)) and "`" in cells[0]:
            found[place + cells[0].strip().strip("`")] = cells[2].strip()
    return found


def undocumented(text: str) -> list[str]:
    return sorted(SETTINGS.keys() - documented(text).keys())


def test_every_key_is_documented() -> None:
    text = PAGE.read_text()
    assert undocumented(text) == []
    assert sorted(documented(text).keys() - SETTINGS.keys()) == [], "documented, and in no settings"


@pytest.mark.parametrize("key", ["region", "nfs.server", "engineCpu", "effect", "max_num_seqs", "pullSecret"])
def test_a_key_that_the_page_lacks_is_found(key: str) -> None:
    lines = PAGE.read_text().splitlines()
    without = "\n".join(line for line in lines if not line.startswith(f"| `{key}` |"))
    new = set(undocumented(without)) - set(undocumented("\n".join(lines)))
    assert len(new) == 1
    assert new.pop().endswith(f".{key}")


def wrong_defaults(page: dict[str, str]) -> list[str]:
    """Keys whose default in the code is a plain value that their cell does not show."""
    wrong: list[str] = []
    for key, field in SETTINGS.items():
        default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
        plain = isinstance(field.default, str | int) and default
        if plain and default not in re.findall(r"[^\s`;,]+", page.get(key, "")):
            wrong.append(f"{key}: {default}")
    return wrong


def test_defaults_are_those_of_the_code() -> None:
    page = documented(PAGE.read_text())
    assert wrong_defaults(page) == []
    assert wrong_defaults({**page, "results.size": "`200Gi`"}) == ["results.size: 20Gi"]


def test_every_output_is_documented() -> None:
    exported = {
        name
        for path in (ROOT / "infra").rglob("*.py")
        for name in re.findall(r'pulumi\.export\(\s*"(\w+)"', path.read_text())
    }
    section = PAGE.read_text().partition("## Outputs")[2].partition("\n## ")[0]
    assert exported == set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
