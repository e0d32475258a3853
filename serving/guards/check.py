"""Runs all guards over what was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from serving.errors import ConfigError
from serving.guards.guard import SEVERITIES, Guard, Severity
from serving.guards.located import Located, Place
from serving.guards.near_names import nearest
from serving.guards.view import View


@dataclass(frozen=True)
class Finding:
    """A mistake that was found. waived: the reason for which it is let pass, None where it is not."""

    guard: Guard
    place: Place
    detail: str
    waived: str | None = None

    @property
    def severity(self) -> Severity:
        return self.guard.severity


def check(view: View, guards: Iterable[Guard], waived: Mapping[str, str] | None = None) -> list[Finding]:
    """What the guards find, the gravest first and then by place. waived: guard to reason."""
    reasons = waived or {}
    found: dict[tuple[str, str, str], Finding] = {}
    for guard in guards:
        if not guard.applies(view.versions):
            continue
        for at, detail in guard.find(view):
            place = at.place if isinstance(at, Located) else at
            found.setdefault((guard.id, str(place), detail), Finding(guard, place, detail, reasons.get(guard.id)))
    order = {severity: number for number, severity in enumerate(SEVERITIES)}
    return sorted(
        found.values(), key=lambda f: (f.waived is not None, order[f.severity], f.place.file, f.place.line or 0)
    )


def check_waivers(waived: Mapping[str, str], guards: Iterable[Guard], key: str) -> None:
    """Raises ConfigError for a waiver of no guard, or without a reason."""
    known = {guard.id for guard in guards}
    for name, reason in waived.items():
        if name not in known:
            near = nearest(name, known, 0.6)
            fix = f"do you mean {near}?" if near else "docs/reference/guards.md lists them"
            raise ConfigError(f"{key}.{name}", "there is no guard of this name", fix)
        if not reason.strip():
            raise ConfigError(f"{key}.{name}", "has no reason", "say why it may pass: the reason is printed")
