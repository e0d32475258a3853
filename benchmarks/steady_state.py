"""When a run under constant load has settled, and how long it has to go on. Decided by its requests, not by a constant.

A service starts empty: its first requests find no queue. Where that ends is found by MSER-5 (White 1997, Simulation
69:6): of all cuts, the one after which the mean of the rest is known best, over means of five requests. It is applied
to the first-token times and to the requests in flight; the later cut counts. A cut in the second half means that the
run never settled, or is too short to tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.records import Request

BATCH = 5
# The measured window spans at least this many mean E2E latencies, so that what is in flight at its ends weighs little,
# and this many times the memory of the queue. The warm-up before it, likewise, or a part of the window.
LATENCIES, MEMORIES = 10, 20
WARMUP_LATENCIES, WARMUP_MEMORIES, WARMUP_PART = 3, 8, 0.3


@dataclass(frozen=True)
class Settled:
    """Where the measured window begins: the index of its first request. `settled` is False when there is no such."""

    first: int
    settled: bool
    sentence: str


@dataclass(frozen=True)
class Length:
    """How many requests a run sends: `warmup` that are expected to be left out, and `measured`."""

    warmup: int
    measured: int

    @property
    def total(self) -> int:
        """All requests."""
        return self.warmup + self.measured


def plan_length(rate: float, e2e_s: float, memory: float, fewest: int) -> Length:
    """Requests needed at `rate` a second when one takes `e2e_s` seconds, `memory` is that of the queue (requests), and
    no window may have less than `fewest`.
    """
    flying = e2e_s * rate
    measured = max(float(fewest), LATENCIES * flying, MEMORIES * memory)
    warmup = max(WARMUP_LATENCIES * flying, WARMUP_MEMORIES * memory, WARMUP_PART * measured)
    return Length(math.ceil(warmup), math.ceil(measured))


def queue_memory(requests: Sequence[Request]) -> float:
    """Over how many requests the number in flight resembles itself: its integrated autocorrelation time, at least 1.

    What is in flight is what the service carries from one moment to the next: prompts that wait, answers being written.

    1 means independent. Summed until the autocorrelation of two neighbouring lags is no longer positive (Geyer 1992,
    Statistical Science 7:4). A window that is short against the memory shows less of it than there is.
    """
    values = np.array(in_flight(requests), dtype=float)
    if len(values) < 4 * BATCH or not values.std():
        return 1.0
    deviations = values - values.mean()
    size = 2 ** math.ceil(math.log2(2 * len(values)))
    spectrum = np.fft.rfft(deviations, size)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum), size)[: len(values)]
    correlation /= correlation[0]
    pairs = correlation[: len(values) // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    return max(1.0, float(2 * pairs[: ends[0] if len(ends) else len(pairs)].sum() - 1))


def find_settled(requests: Sequence[Request]) -> Settled:
    """Where a run has settled. `requests` are all of one run in the order of sending."""
    answered = [(index, request) for index, request in enumerate(requests) if request.ttft_ms is not None]
    if len(answered) < 4 * BATCH:
        return Settled(0, False, f"{len(answered)} answers are too few to see where the run settles")
    ttft = _cut([request.ttft_ms or 0.0 for _, request in answered])
    flying = _cut([float(count) for count in in_flight(requests)])
    first = max(answered[ttft][0], flying, _one_latency(requests))
    half = len(requests) // 2
    if first > half:
        return Settled(half, False, f"not settled after half of {len(requests)} requests: the load still builds up")
    return Settled(first, True, f"settled after {first} of {len(requests)} requests")


def in_flight(requests: Sequence[Request]) -> list[int]:
    """Requests in flight at each one's sending, itself not counted. In the order of `requests`."""
    sent = np.array([request.sent_s for request in requests])
    ended = np.sort([request.end_s for request in requests])
    return [int(position - done) for position, done in enumerate(np.searchsorted(ended, sent, side="right"))]


def _one_latency(requests: Sequence[Request]) -> int:
    """Requests sent during the first mean E2E: before it, what is in flight cannot be what it will be."""
    span = float(np.mean([request.end_s - request.sent_s for request in requests]))
    start = requests[0].sent_s
    return sum(request.sent_s - start < span for request in requests)


def _cut(values: Sequence[float]) -> int:
    """MSER-5: the index at which the rest has the smallest squared standard error."""
    batches = np.array(values[: len(values) // BATCH * BATCH]).reshape(-1, BATCH).mean(axis=1)
    # The last batches are left out of the choice: the scatter of a handful is no estimate of it.
    errors = [float(np.var(batches[cut:])) / (len(batches) - cut) for cut in range(max(1, len(batches) - BATCH))]
    return int(np.argmin(errors)) * BATCH
