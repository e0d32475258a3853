"""Inputs of a resource, held against the classes of its provider's SDK: names, required ones, types."""

import inspect
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin

import pulumi
from pulumi._types import input_type_py_to_pulumi_names, input_type_types, is_input_type

from tools.rehearsal.pulumi_wire import UNKNOWN, Properties


def wrong_types(arguments: type, inputs: Properties) -> list[str]:
    """What does not fit `arguments`, the SDK's class of a resource's inputs: a line each, with the property's path."""
    return list(_object(arguments, inputs, ""))


def _object(arguments: type, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path}: expected an object, got {value!r}"
        return
    types, required = _properties(arguments)
    for name in value.keys() - types.keys():
        yield f"{path}{name}: unexpected property; known here: {', '.join(sorted(types))}"
    for name in required - value.keys():
        yield f"{path}{name}: missing required property"
    for name in value.keys() & types.keys():
        yield from _value(types[name], value[name], f"{path}{name}")


@cache
def _properties(arguments: type) -> tuple[dict[str, Any], set[str]]:
    """Wire name -> type, and the names that have no default. A name is made up where it is left out."""
    names = input_type_py_to_pulumi_names(arguments)
    parameters = inspect.signature(arguments.__init__).parameters
    required = {wire for name, wire in names.items() if parameters[name].default is inspect.Parameter.empty}
    return dict(input_type_types(arguments)), required


def _value(declared: Any, value: Any, path: str) -> Iterator[str]:
    if value is None or value == UNKNOWN:
        return
    member = _member(declared)
    if get_origin(member) in (list, Sequence):
        if not isinstance(value, list):
            yield f"{path}: expected a list, got {value!r}"
            return
        for number, item in enumerate(value):
            yield from _value(get_args(member)[0], item, f"{path}[{number}]")
    elif get_origin(member) in (dict, Mapping):
        if not isinstance(value, Mapping):
            yield f"{path}: expected a map, got {value!r}"
            return
        for key, item in value.items():
            yield from _value(get_args(member)[1], item, f"{path}.{key}")
    elif is_input_type(member):
        yield from _object(member, value, f"{path}.")
    elif not _is(member, value):
        yield f"{path}: expected {member.__name__}, got {value!r}"


def _member(declared: Any) -> Any:
    """The one type that matters in `Input[Union[str, Region]]` and the like."""
    while get_args(declared) and get_origin(declared) not in (list, dict, Sequence, Mapping):
        members = [one for one in get_args(declared) if one is not type(None)]
        declared = next(one for one in members if get_origin(one) not in (Awaitable, pulumi.Output))
    return str if isinstance(declared, type) and issubclass(declared, Enum) else declared


def _is(wanted: type, value: Any) -> bool:
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
