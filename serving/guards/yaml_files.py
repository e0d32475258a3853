"""Reads YAML so that every value keeps its line; documents of one text, `List`s taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from serving.errors import ConfigError
from serving.guards.located import Located, Path, Place, in_words

# libyaml reads ten thousand lines in a third of a second, the same in Python takes four.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class YamlOrigin:
    """One document. `first_line`: lines of the file before the text, which is part of it where Serve's config is."""

    file: str
    root: yaml.Node
    first_line: int = 0
    prefix: str = ""
    fixed_line: int | None = None
    above: Path = field(default=())

    def place(self, path: Path) -> Place:
        node = self.root
        for key in path:
            below = _below(node, key)
            if below is None:
                break
            node = below
        mark = node.start_mark
        line = self.fixed_line or mark.line + 1 + self.first_line
        return Place(self.file, self.prefix + in_words((*self.above, *path)), line, mark.column + 1)

    def inside(self, at: Path) -> tuple[int, int | None]:
        """For a text that holds YAML itself: the lines before it, or the one line where it is not a block."""
        node = self.root
        for key in at:
            node = _below(node, key) or node
        line = node.start_mark.line + self.first_line
        block = isinstance(node, yaml.ScalarNode) and node.style == "|"
        return (line + 1, None) if block else (line, line + 1)


@dataclass(frozen=True)
class Duplicate:
    """A key that stands twice in one object: the later one wins, and nobody says so."""

    place: Place
    key: str


def documents(text: str, file: str, origin: YamlOrigin | None = None, at: Path = ()) -> list[Located]:
    """The documents of a text. `origin` and `at`: the value of another document that this text is.

    Raises ConfigError where it is not YAML.
    """
    before, fixed, prefix = 0, None, ""
    if origin is not None:
        before, fixed = origin.inside(at)
        prefix = f"{in_words(at)}: "
    try:
        roots = [node for node in yaml.compose_all(text, Loader=_Loader) if node is not None]
        constructor = yaml.constructor.SafeConstructor()
        values = [constructor.construct_document(root) for root in roots]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{fixed or mark.line + 1 + before}" if mark else file
        problem = getattr(error, "problem", None) or " ".join(str(error).split())[:200]
        templated = "; render the template first" if "{{" in text else ""
        raise ConfigError(where, f"is not YAML: {problem}{templated}") from None
    found: list[Located] = []
    for root, value in zip(roots, values, strict=True):
        document = YamlOrigin(file, root, before, prefix, fixed)
        whole = Located(value, (), document)
        listed = whole.at("items") if isinstance(value, dict) and value.get("kind") == "List" else None
        found += list(listed.entries()) if listed is not None else [whole]
    return found


def duplicates(document: Located) -> Iterator[Duplicate]:
    """Every key that stands twice in one object of the document."""
    origin = document.origin
    if not isinstance(origin, YamlOrigin):
        return
    seen: set[int] = set()
    todo: list[yaml.Node] = [origin.root]
    while todo:
        node = todo.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            todo += node.value
        elif isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                # What `<<` merged stands elsewhere, and is there to be overridden.
                merged = not node.start_mark.index <= key.start_mark.index <= node.end_mark.index
                if isinstance(key, yaml.ScalarNode) and not merged:
                    if key.value in names and key.value != "<<":
                        line = origin.fixed_line or key.start_mark.line + 1 + origin.first_line
                        place = Place(origin.file, origin.prefix + key.value, line, key.start_mark.column + 1)
                        yield Duplicate(place, key.value)
                    names.add(key.value)
                if not merged:
                    todo.append(value)


def _below(node: yaml.Node, key: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key]
    if isinstance(node, yaml.MappingNode):
        for name, value in reversed(node.value):  # the last one wins
            if isinstance(name, yaml.ScalarNode) and name.value == str(key):
                return value
    return None
