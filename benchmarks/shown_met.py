"""Up to which rate an SLO is shown to be met, where no run missed it and there is no boundary to estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.boundary import NEAR
from benchmarks.joint_search import answers_of, met
from benchmarks.measured import Measured
from benchmarks.slo import Slo

# A single run says nothing about how much runs scatter, and two hardly more.
FEWEST = 3


def shown_met(bounds: Sequence[Slo], runs: Sequence[Measured], confidence: float) -> float | None:
    """The highest rate, in requests per second, that meets an SLO with `confidence` (one-sided); None where one run
    missed it, or where the highest ones are fewer than FEWEST or scatter too much.

    By Student's t on log(measured / bound) of the highest runs, which is least at the lowest of them: that is the rate.
    """
    if len(runs) < FEWEST or not all(met(bounds, runs)):
        return None
    from scipy import stats  # see benchmarks/boundary.py

    ordered = sorted(runs, key=lambda run: run.rate)
    near = [run for run in ordered if math.log(ordered[-1].rate / run.rate) <= NEAR]
    highest = near if len(near) >= FEWEST else ordered[-FEWEST:]
    t = float(stats.t.ppf(confidence, len(highest) - 1))
    for values in answers_of(bounds, highest).values():
        excess = np.array([run.excess for run in values])
        if float(excess.mean()) + t * float(excess.std(ddof=1)) / math.sqrt(len(excess)) >= 0:
            return None
    return highest[0].rate
