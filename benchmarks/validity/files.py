"""Is what was written down whole?"""

from __future__ import annotations

from benchmarks.validity.finding import Verdict, fault, fault_if, kind, ok
from benchmarks.validity.seen import RunSeen, Seen


@kind("records")
def records(seen: Seen) -> Verdict | None:
    """Not every request that was due has a record: the load generator ended early, or its file was cut off."""
    scenario, rate = seen.scenario, seen.summary.offered
    due = seen.due if seen.due is not None else scenario.warmup_requests(rate) + scenario.measured_requests(rate)
    sent = seen.summary.requests_sent
    return fault_if(sent != due, f"{sent} of {due} requests have a record", sent=sent, due=due)


@kind("files")
def files(seen: RunSeen) -> Verdict | None:
    """A result file is missing, cut off or changed since: a full disk, a copy that stopped, an edit."""
    if seen.damaged:
        return fault("; ".join(seen.damaged), damaged=len(seen.damaged))
    return ok("every result file is whole", damaged=0)
