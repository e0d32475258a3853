"""Did the load generator and its clock measure the service, or themselves?"""

from __future__ import annotations

import numpy as np

from benchmarks.client_watch import ClientSample
from benchmarks.validity.finding import Verdict, fault, kind, note, ok
from benchmarks.validity.seen import Seen

# Lateness over TTFT (p90 of both). Time that a request waits inside the client is in no latency.
LATE_NOTE, LATE_FAULT = 0.1, 0.5
LATE_MS = 5.0  # less is what timers and a thread's wake-up take
# Cores of its own: a Python process can use one.
BOUND = 0.9
# Share of a machine whose cores everybody wants.
BUSY = 0.9
# Seconds. NTP slews a clock by 0.5 ms a second at most, and steps it beyond 128 ms (ntpd; chrony as configured).
STEP_S = 0.05
# A request cannot be sent before it was due. AIPerf counts due times from one reading of the clock on, and reads the
# clock anew for every request (aiperf 0.13, workers/clock_offset_tracker.py), so a step shows between the two.
EARLY_S = 0.005


@kind("client-late")
def late(seen: Seen) -> Verdict | None:
    """The client sent late, by over half of TTFT (p90 of both); over a tenth is a note. The wait inside the client is
    in no latency, so the service looks faster than it is."""
    if not seen.measured:
        return None
    lag = float(np.quantile([(r.sent_s - r.due_s) * 1000 for r in seen.measured], 0.9))
    ttfts = [r.ttft_ms for r in seen.good if r.ttft_ms is not None]
    if not ttfts:
        return None
    ttft = float(np.quantile(ttfts, 0.9))
    evidence = {"lag_p90_ms": lag, "ttft_p90_ms": ttft}
    sentence = f"the client sent {lag:.1f} ms late (p90), TTFT {ttft:.0f} ms (p90)"
    if lag <= LATE_MS or lag <= LATE_NOTE * ttft:
        return ok(sentence, **evidence)
    return fault(sentence, **evidence) if lag > LATE_FAULT * ttft else note(sentence, **evidence)


@kind("client-ceiling")
def ceiling(seen: Seen) -> Verdict | None:
    """The load comes near what the load generator can offer, by its rate and lengths and what AIPerf was measured to
    take for such requests: over half of its workers' cores. Said before anything is sent, and a note afterwards."""
    if seen.demand is None:
        return None
    evidence = {"cores": seen.demand.cores, "workers": seen.demand.workers, "cpu_ms": seen.demand.cpu_ms}
    if seen.demand.near:
        return note(f"near what the load generator can offer: {seen.demand}", **evidence)
    return ok(f"the load generator has room: {seen.demand}", **evidence)


@kind("client-cpu")
def cpu(seen: Seen) -> Verdict | None:
    """A process of the load generator used a whole core while it sent, or waited for one: it, and not the service, may
    set the times. A machine whose cores were all busy is a note."""
    during = _during(seen)
    if not during:
        return None
    busiest, wanting, machine = (
        float(np.mean([getattr(look, name) for look in during])) for name in ("busiest", "wanting", "machine")
    )
    evidence = {"busiest": busiest, "wanting": wanting, "machine": machine, "looks": len(during)}
    sentence = f"the load generator's busiest process used {100 * busiest:.0f} % of a core while it sent"
    if max(busiest, wanting) >= BOUND:
        return fault(f"{sentence} and wanted {100 * max(busiest, wanting):.0f} %: it is CPU-bound", **evidence)
    if machine >= BUSY:
        return note(f"{sentence}, but {100 * machine:.0f} % of the machine's cores were busy", **evidence)
    return ok(f"{sentence}, {100 * machine:.0f} % of the machine was busy", **evidence)


@kind("clock-steps")
def clock_steps(seen: Seen) -> Verdict | None:
    """The machine's clock was set during the load. Latencies survive that; arrivals, windows and rates do not."""
    early = min((r.sent_s - r.due_s for r in seen.requests), default=0.0)
    steps = [
        (after.wall_s - before.wall_s) - (after.monotonic_s - before.monotonic_s)
        for before, after in zip(seen.client or (), (seen.client or ())[1:], strict=False)
    ]
    worst = max(steps, key=abs, default=0.0)
    evidence = {"largest_step_s": worst, "earliest_s": early}
    if abs(worst) > STEP_S:
        return fault(f"the clock jumped by {worst:+.2f} s against one that nobody sets", **evidence)
    if early < -EARLY_S:
        return fault(f"a request was sent {-early:.2f} s before it was due: the clock was set back", **evidence)
    return ok("the clock ran evenly", **evidence)


def _during(seen: Seen) -> list[ClientSample]:
    """Looks while requests were sent: before that the load generator starts and makes its prompts."""
    if not seen.client or not seen.requests:
        return []
    first, last = seen.requests[0].sent_s, seen.requests[-1].sent_s
    return [sample for sample in seen.client if first <= sample.wall_s <= last]
