"""What to do about faults: when a comparison must not be made, and when a fault says no more than `too much load`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.validity.finding import Finding
from benchmarks.validity.kinds import KINDS
from benchmarks.validity.steadiness import RISE

TOO_SHORT = {"window", "warm-up"}
# Kinds of overload that other things than overload show, too.
RISING = TOO_SHORT | {"queue", "ttft-trend"}
# A rise over RISE by so many errors of its slope is a sign beside a window that is too short. On the queueing model of
# tools/simulated_server, windows of 15 s, 40 runs each: 0, 5 and 7 have one at 30, 80 and 90 % of its capacity, where
# 0, 0 and 8 faults of that kind are; at 1.1 and 1.2 times the capacity 36 and 40 have one, and `queue` is a fault in no
# more than 16 and 29.
SIGMAS_BESIDE = 2.0


def refusals(findings: Sequence[Finding], accepted: Sequence[str]) -> list[str]:
    """Why numbers with these findings must not be used, a line each; empty when they may be.

    A fault refuses unless `accepted` has its id. An accepted id that no kind has refuses too: it is a mistake in typing
    or a finding of another version, and what it was to accept is then not accepted.
    """
    unknown = [
        f"--accept {name}: there is no such finding; there are: {', '.join(sorted(KINDS))}"
        for name in dict.fromkeys(accepted)
        if name not in KINDS
    ]
    faults = [f for f in findings if f.outcome == "fault" and f.id not in accepted]
    lines = [f"{f.id}: {f.sentence} (--accept {f.id} uses the numbers all the same)" for f in faults]
    return [*unknown, *dict.fromkeys(lines)]


def accepted_faults(findings: Sequence[Finding], accepted: Sequence[str]) -> list[Finding]:
    """The faults that were accepted by name: a report that uses the numbers must repeat them."""
    return [finding for finding in findings if finding.outcome == "fault" and finding.id in accepted]


def only_overload(findings: Sequence[Finding]) -> bool:
    """True when there are faults that show too much load, and no others.

    The latencies of such a rate are no numbers to quote, but that it is too high is then a result: what a search for
    the highest rate needs to know.
    """
    faults = [finding.id for finding in findings if finding.outcome == "fault"]
    return shows_overload(findings) and all(name in KINDS and KINDS[name].overload for name in faults)


def only_too_short(findings: Sequence[Finding]) -> bool:
    """True when there are faults, and all say that the window or the warm-up is short for a service so slow."""
    faults = {finding.id for finding in findings if finding.outcome == "fault"}
    return bool(faults) and faults <= TOO_SHORT


def shows_overload(findings: Sequence[Finding]) -> bool:
    """Whether a fault says `too much load`. Others beside it, which may have been accepted, do not take that back.

    A window or a warm-up that is too short comes about with any load, and times that fall are no queue: of those it is
    overload only where something rises besides.
    """
    faults = {f.id for f in findings if f.outcome == "fault" and f.id in KINDS and KINDS[f.id].overload}
    return bool(faults - RISING) or (bool(faults) and any(map(_rises, findings)))


def _rises(finding: Finding) -> bool:
    rises = (name.removesuffix("_rise") for name in finding.evidence if name.endswith("_rise"))
    return any(
        _number(finding, f"{name}_rise") > RISE and _number(finding, f"{name}_sigmas") > SIGMAS_BESIDE for name in rises
    )


def _number(finding: Finding, name: str) -> float:
    value = finding.evidence.get(name)
    return value if isinstance(value, int | float) else 0.0
