"""Was it one and the same service from beginning to end, and ours alone?"""

from __future__ import annotations

from benchmarks.validity.finding import Verdict, fault, kind, note, ok
from benchmarks.validity.seen import Seen


@kind("replicas")
def replicas(seen: Seen) -> Verdict | None:
    """A replica or engine was restarted, added or taken away. The rate was offered to another service meanwhile."""
    if seen.proof.replica_changes:
        return fault("; ".join(seen.proof.replica_changes))
    if seen.proof.foreign_requests is None:
        return note("the service reports no request count: a restart cannot be seen")
    return ok("no sign of a replica that was restarted or added during the rate")


@kind("foreign-traffic")
def foreign_traffic(seen: Seen) -> Verdict | None:
    """The service answered requests of somebody else meanwhile."""
    foreign = seen.proof.foreign_requests
    if foreign is None:
        return note("the service reports no request count: foreign traffic cannot be seen")
    if foreign:
        return fault(f"the service answered {foreign} requests that this run did not send", requests=foreign)
    return ok("the service answered no requests but ours", requests=0)
