"""`do you mean X?`: the known name that is nearest to one that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str], near_enough: float = 0.8) -> str | None:
    """The known name that is near, whatever its case and dashes. near_enough: from 0 to 1, equal."""
    plain: Mapping[str, str] = {_plain(word): word for word in sorted(known)}
    near = get_close_matches(_plain(name), plain, 1, near_enough)
    return plain[near[0]] if near else None


def meant(name: str, known: Iterable[str], near_enough: float = 0.8) -> str:
    """`; do you mean X?` where a known name is near."""
    near = nearest(name, known, near_enough)
    return f"; do you mean {near}?" if near else ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
