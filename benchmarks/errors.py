"""The one exception a user of this package sees as a line of text, and what a model complains of as such a line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError

_SHOWN = 3  # complaints; the rest are counted


class BenchmarkError(Exception):
    """Something the user can put right. The message is one line: what, where, and what to do."""


def first_problem(error: ValidationError, model: type[BaseModel] | None = None, data: object = None) -> str:
    """The first complaints of a pydantic error as `key: complaint`, and how many more there are.

    With `model`, an unknown key comes with the nearest known ones; with `data`, what was read, keys are those in it.
    """
    lines = dict.fromkeys(_line(dict(problem), model, data) for problem in error.errors(include_url=False))
    more = len(lines) - _SHOWN
    said = "; ".join(list(lines)[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return " ".join(said.split())


def place_of(location: Sequence[Any], data: object) -> list[Any]:
    """The keys and indices in `data` that a pydantic location names, without the names of variants that it has too."""
    place: list[Any] = []
    for number, part in enumerate(location):
        inside = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if inside or (isinstance(data, dict) and part in data):
            data = cast("Any", data)[part]
        elif number < len(location) - 1 or not isinstance(data, dict):
            continue
        place.append(part)
    return place


def _line(problem: dict[str, Any], model: type[BaseModel] | None, data: object) -> str:
    location = list(problem["loc"])
    place = location if data is None else place_of(location, data)
    kind, said = problem["type"], problem["msg"].removeprefix("Value error, ")
    if kind == "extra_forbidden":
        known = [] if model is None else list(_fields(model, location[:-1]))
        near = difflib.get_close_matches(str(place[-1]), known, cutoff=0.5) or known
        said = "unknown key" + (f"; did you mean {', '.join(near)}?" if near else "")
    elif kind == "missing":
        said = "is missing"
    elif kind != "value_error":
        said = said.replace("Input should be", "must be").replace(" should ", " must ")
        value = problem["input"]
        if isinstance(value, str | int | float) and len(str_of(value)) <= 40:
            said += f", not {str_of(value)}"
    if not place:
        return said if kind == "value_error" else f"(whole file): {said}"
    return f"{'.'.join(str(part) for part in place)}: {said}"


def str_of(value: object) -> str:
    """A value as text, also a number of more digits than Python writes."""
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def _fields(model: type[BaseModel], location: Sequence[Any]) -> Iterator[str]:
    """Names of the keys of the block at a location of a model."""
    models = [model]
    for part in location:
        inner = [one.model_fields[part].annotation for one in models if part in one.model_fields]
        models = [found for annotation in inner for found in _models(annotation)] or models
    for one in models:
        yield from one.model_fields


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
