"""Is a measurement worth anything? Each check looks for one known way of lying to oneself.

Pure: from a run's records, metrics and settings to findings. docs/reference/validity.md lists the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.priming import Priming
from benchmarks.scenario import Scenario
from benchmarks.target import Target
from benchmarks.validity.acceptance import accepted_faults, only_overload, only_too_short, refusals, shows_overload
from benchmarks.validity.finding import Finding, Kind
from benchmarks.validity.kinds import KINDS, OF_COMPARISON, OF_RATE, OF_RUN
from benchmarks.validity.seen import Pair, RunSeen, Seen, Side

__all__ = [
    "KINDS",
    "Finding",
    "Pair",
    "RunSeen",
    "Seen",
    "Side",
    "accepted_faults",
    "check_comparison",
    "check_rate",
    "check_run",
    "only_overload",
    "only_too_short",
    "refusals",
    "shows_overload",
]


def check_rate(seen: Seen) -> list[Finding]:
    """All checks of one rate that apply, in the order of a request's life."""
    return _all(OF_RATE, seen)


def check_run(
    target: Target,
    scenario: Scenario,
    priming: Priming | None,
    image: Mapping[str, list[str]],
    damaged: Sequence[str] = (),
) -> list[Finding]:
    """Checks that hold for a whole run; what the arguments are stands at RunSeen."""
    return _all(OF_RUN, RunSeen(target, scenario, priming, image, damaged))


def check_comparison(pair: Pair) -> list[Finding]:
    """Checks of two sides that are to differ in their arrangement only. Each side has findings of its own besides."""
    return _all(OF_COMPARISON, pair)


def _all[Subject](kinds: tuple[Kind[Subject], ...], subject: Subject) -> list[Finding]:
    return [finding for kind in kinds if (finding := kind(subject)) is not None]
