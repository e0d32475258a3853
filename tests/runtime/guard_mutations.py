"""Slips of the pen in valid configurations, as hypothesis draws them: what a hurried person or a merge does to YAML."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

Config = dict[str, Any]
Path = tuple[str | int, ...]

# Texts in here are names of the user's own: any is as good as the other.
_FREE = {"model_id", "model_source", "name", "env_vars", "route_prefix", "callback_kwargs", "callback_class"}


@dataclass(frozen=True)
class Mutation:
    """One slip: what was done where, and what became of the configuration."""

    base: str
    kind: str
    path: Path
    was: Any
    config: Config

    def __str__(self) -> str:
        where = ".".join(str(part) for part in self.path)
        return f"{self.base}: {self.kind} at {where}"


def mutations(bases: dict[str, Config], count: int) -> list[Mutation]:
    """As many different ones; the same every time."""
    found: dict[str, Mutation] = {}

    @settings(
        max_examples=4 * count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(st.sampled_from(sorted(bases)).flatmap(lambda base: _slips(base, bases[base])))
    def collect(mutation: Mutation) -> None:
        if mutation.config != bases[mutation.base]:
            found.setdefault(f"{mutation} {mutation.config!r}", mutation)

    collect()
    assert len(found) >= count, f"only {len(found)} different mutations"
    return list(found.values())[:count]


def _slips(base: str, config: Config) -> st.SearchStrategy[Mutation]:
    keys = [path for path in _paths(config) if isinstance(path[-1], str)]
    values = [path for path in _paths(config) if not isinstance(_at(config, path), dict | list)]
    return st.one_of(
        st.tuples(st.sampled_from(keys), st.sampled_from(sorted(_MISSPELLINGS))).map(
            lambda drawn: _renamed(base, config, *drawn)
        ),
        st.sampled_from(keys).map(lambda path: _removed(base, config, path)),
        st.tuples(st.sampled_from(values), st.sampled_from(_OTHER_VALUES)).map(
            lambda drawn: _replaced(base, config, *drawn)
        ),
        st.sampled_from(values).map(lambda path: _misspelt_value(base, config, path)),
    )


# How a key is misspelt: name -> what becomes of it.
_MISSPELLINGS = {
    "a letter lost": lambda key: key[:-1],
    "letters swapped": lambda key: key[:1] + key[2:3] + key[1:2] + key[3:],
    "dashes": lambda key: key.replace("_", "-"),
    "capitals": lambda key: key.upper() if key.islower() else key.lower(),
    "camel": lambda key: key.split("_")[0] + "".join(part.capitalize() for part in key.split("_")[1:]),
    "plural": lambda key: key + "s",
}
_OTHER_VALUES: list[Any] = ["many", -1, 0, 2.5, None, [], {}, True, 10**6]


def _renamed(base: str, config: Config, path: Path, how: str) -> Mutation:
    changed = copy.deepcopy(config)
    parent, key = _at(changed, path[:-1]), str(path[-1])
    name = _MISSPELLINGS[how](key)
    # In its place, as it stands in the text.
    entries = [(name if k == key else k, v) for k, v in parent.items()]
    parent.clear()
    parent.update(entries)
    return Mutation(base, f"key with {how}", path, key, changed)


def _removed(base: str, config: Config, path: Path) -> Mutation:
    changed = copy.deepcopy(config)
    was = _at(changed, path[:-1]).pop(path[-1])
    return Mutation(base, "key removed", path, was, changed)


def _replaced(base: str, config: Config, path: Path, value: Any) -> Mutation:
    changed = copy.deepcopy(config)
    was = _at(changed, path)
    _at(changed, path[:-1])[path[-1]] = copy.deepcopy(value)
    return Mutation(base, f"{value!r} for a value", path, was, changed)


def _misspelt_value(base: str, config: Config, path: Path) -> Mutation:
    changed = copy.deepcopy(config)
    was = _at(changed, path)
    if isinstance(was, str) and len(was) > 3 and not _FREE.intersection(map(str, path)):
        _at(changed, path[:-1])[path[-1]] = was[:-2] + was[-1]
    return Mutation(base, "a letter lost in a value", path, was, changed)


def _paths(value: Any, above: Path = ()) -> Iterator[Path]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in entries:
        yield (*above, key)
        if key not in _FREE:
            yield from _paths(below, (*above, key))


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value
