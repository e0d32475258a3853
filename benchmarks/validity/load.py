"""Was the load that which was asked for: as much of it, at random moments, each prompt a new one?"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.validity.finding import Verdict, fault, fault_if, kind, note
from benchmarks.validity.poisson import LARGEST_DEVIATION, poissonness
from benchmarks.validity.seen import Seen

# What a steady client may lose besides chance.
RATE = 0.05


@kind("offered-rate")
def offered_rate(seen: Seen) -> Verdict | None:
    """The client sent slower or faster than offered, by more than 5 % and more than chance explains. The result would
    stand under a rate that was never offered."""
    summary = seen.summary
    if summary.measured < 2:
        return fault("too few requests to tell at which rate they were sent", measured=summary.measured)
    off = summary.achieved / summary.offered - 1
    deviations = _deviations(summary.window_s * summary.offered, summary.measured - 1)
    return fault_if(
        abs(off) > RATE and abs(deviations) > LARGEST_DEVIATION,
        f"{summary.achieved:.2f} req/s sent for {summary.offered:g} offered: {100 * off:+.0f} %, "
        f"{deviations:+.1f} standard deviations of Poisson arrivals",
        achieved=summary.achieved,
        offered=summary.offered,
        deviations=deviations,
    )


@kind("arrivals")
def arrivals(seen: Seen) -> Verdict | None:
    """Arrivals that are not Poisson where Poisson was asked for: evenly spaced, in bursts, or at a rate that comes and
    goes. Even spacing hides queueing, bursts exaggerate it."""
    if seen.scenario.arrivals != "poisson" or seen.scenario.turns != 1:
        return None
    sent = [request.sent_s for request in seen.requests]
    found = poissonness(sent)
    if found is None:
        return note(f"{len(sent)} arrivals are too few to tell how they are spaced", arrivals=len(sent))
    gaps = np.diff(sent)
    variation = float(gaps.std() / gaps.mean())
    said = f"gaps vary by {variation:.2f} of their mean (Poisson: 1), counts by {found.dispersion:.2f} (Poisson: 1)"
    if not found.gaps_fit:
        kind_of = "too even" if variation < 1 else "in bursts"
        said = (
            f"arrivals are {kind_of}: {said}; gaps are {found.distance:.2f} from exponential, chance: {found.limit:.2f}"
        )
    elif not found.counts_fit:
        kind_of = "their rate comes and goes" if found.dispersion > 1 else "too even"
        said = f"arrivals are not Poisson, {kind_of}: {said}; {found.deviations:+.1f} standard deviations"
    return fault_if(
        not (found.gaps_fit and found.counts_fit),
        said,
        arrivals=len(sent),
        gap_distance=found.distance,
        gap_limit=found.limit,
        dispersion=found.dispersion,
        deviations=found.deviations,
    )


def _deviations(length: float, gaps: int) -> float:
    """How unlikely it is that so many gaps of mean 1 last for `length`; more is slower, hence negative.

    Wilson and Hilferty's cube root makes the (skewed) gamma distribution of that length normal.
    """
    spread = 1 / (9 * gaps)
    return (1 - spread - (length / gaps) ** (1 / 3)) / math.sqrt(spread)
