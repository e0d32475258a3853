"""What a guard is: a question to a configuration, and what it says about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from serving.guards.located import Located, Place
from serving.guards.view import View

# error: it will not do what it says. warning: likely wrong. note: good to know.
Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

# Where something was found, and what about it: the value at hand, the names, the numbers.
Found = tuple[Located | Place, str]


@dataclass(frozen=True)
class Guard:
    """One mistake. The texts are for people who have never heard of it.

    id: the field's words with dashes. what: the mistake. silently: what would have happened without a word. fix: what
    to do. source: an issue, or a file and version of the program that does it. holds: for which versions, component to
    specifier, as `{"ray": "<2.60"}`; empty: for all that were read.
    """

    id: str
    severity: Severity
    what: str
    silently: str
    fix: str
    source: str
    find: Callable[[View], Iterable[Found]]
    holds: Mapping[str, str]

    def applies(self, versions: Mapping[str, str]) -> bool:
        """Whether it holds for these versions. One that is a commit, or not known, is taken for one that it holds for:
        a guard that needs to be sure asks itself."""
        return all(
            _contains(specifier, versions[component])
            for component, specifier in self.holds.items()
            if component in versions
        )


@cache  # few pairs, asked for by each of the guards
def _contains(specifier: str, version: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True


_GUARDS: dict[str, Guard] = {}


def guard(
    id: str,
    severity: Severity,
    *,
    what: str,
    silently: str,
    fix: str,
    source: str,
    holds: Mapping[str, str] | None = None,
) -> Callable[[Callable[[View], Iterable[Found]]], Guard]:
    """Make a guard of the function below: it gets what was read, and yields where the mistake stands in it."""

    def register(find: Callable[[View], Iterable[Found]]) -> Guard:
        assert id not in _GUARDS, f"two guards are called {id}"  # noqa: S101
        made = Guard(id, severity, what, silently, fix, source, find, dict(holds or {}))
        _GUARDS[id] = made
        return made

    return register


def registered() -> list[Guard]:
    """All guards of the modules that were imported, in their order."""
    return list(_GUARDS.values())
