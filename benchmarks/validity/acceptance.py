"""What to do about faults: when a comparison must not be made, and when a fault says no more than `too much load`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.validity.finding import Finding
from benchmarks.validity.kinds import KINDS


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
    """True when there are faults, and each is of a kind that more load than a service can carry shows by itself.

    The latencies of such a rate are no numbers to quote, but that it is too high is then a result: what a search for
    the highest rate needs to know.
    """
    faults = [finding.id for finding in findings if finding.outcome == "fault"]
    return bool(faults) and all(name in KINDS and KINDS[name].overload for name in faults)
