"""YAML of which nothing is lost or guessed: a key that stands twice is refused, and every value has its line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import yaml
from yaml.constructor import ConstructorError

_MERGE = "tag:yaml.org,2002:merge"


class NotYamlError(ValueError):
    """What is wrong, in one line."""


class Document:
    """What a text says, `data`, and on which line."""

    def __init__(self, text: str) -> None:
        """Raises NotYamlError."""
        try:
            loader = _Loader(text)
            self._root = cast("yaml.Node | None", loader.get_single_node())
            if self._root is not None:
                _check_keys(self._root, set())
            self.data: Any = None if self._root is None else loader.construct_document(self._root)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"line {mark.line + 1}: " if mark else ""
            raise NotYamlError(f"{where}{' '.join((error.problem or error.context or 'no YAML').split())}") from None
        except yaml.YAMLError as error:
            raise NotYamlError(str(error).splitlines()[0]) from None
        except RecursionError:
            raise NotYamlError("nested too deeply") from None

    def line(self, place: Sequence[Any]) -> int:
        """The line of the key or entry at a place, from 1; of the nearest one around it, if it is not there."""
        node, line = self._root, 1
        for part in place:
            found = _child(node, part)
            if found is None:
                break
            line, node = found
        return line


class _Loader(yaml.SafeLoader):
    """The safe loader, whose own tracebacks at odd scalars (a date of month 13, `!!int abc`) name their place."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, OverflowError, LookupError):
            shown = str(node.value)[:40]
            raise ConstructorError(None, None, f"{shown!r} is no value that can be read", node.start_mark) from None


def _check_keys(node: yaml.Node, seen: set[int]) -> None:
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            _check_keys(child, seen)
    if isinstance(node, yaml.MappingNode):
        first: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE else None
            line = key.start_mark.line + 1
            if name in first:
                raise NotYamlError(f"line {line}: {key.value[:40]} stands twice, first on line {first[name]}")
            if name is not None:
                first[name] = line
            _check_keys(value, seen)


def _child(node: yaml.Node | None, part: object) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # what a merge brings stands first
            if isinstance(key, yaml.ScalarNode) and key.value == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line + 1, node.value[part]
    return None
