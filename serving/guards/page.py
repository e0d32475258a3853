"""docs/reference/guards.md: all guards, as they describe themselves."""

from __future__ import annotations

from collections.abc import Sequence

from serving.guards.guard import SEVERITIES, Guard

_INTRODUCTION = """# Guards

Mistakes of prefill/decode serving that are seen in a configuration before it is deployed, and that nobody would report
afterwards. `pulumi preview` and `pulumi up` of a stack run all of them, and so does `python -m serving check` over
[stacks, Serve configs and manifests](../howto/check-a-configuration.md).

An **error** will not do what it says; `pulumi preview` ends with it. A **warning** is likely wrong, a **note** good to
know. *Holds for* names the versions whose source was read or run; without one it holds for all of them.

This page is written from the code of the guards (`serving/guards/`).
"""


def text(guards: Sequence[Guard]) -> str:
    """The page."""
    parts = [_INTRODUCTION]
    for severity in SEVERITIES:
        listed = sorted((guard for guard in guards if guard.severity == severity), key=lambda guard: guard.id)
        parts.append(f"## {severity.capitalize()}s ({len(listed)})\n")
        parts.append("| guard | mistake | what happens silently | what to do | holds for | source |")
        parts.append("|---|---|---|---|---|---|")
        parts += [_row(guard) for guard in listed]
        parts.append("")
    return "\n".join(parts)


def _row(guard: Guard) -> str:
    holds = ", ".join(f"{component} {specifier}" for component, specifier in guard.holds.items())
    cells = (f"`{guard.id}`", guard.what, guard.silently, guard.fix, holds, guard.source)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
