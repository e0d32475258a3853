"""When a run under constant load has settled. Decided by its requests, not by a constant.

A service starts empty: its first requests find no queue. Where that ends is found by MSER-5 (White 1997, Simulation
69:6): of all cuts in the first half, the one after which the mean of the rest is known best, over means of five
requests. It is applied to the logarithms of first-token times and of requests in flight (one long answer is no trend);
the later cut counts. Where the last cut
of all is the best, the run never settled, or is too short to tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.records import Request

BATCH = 5
# With fewer answers the best cut is one by chance, and takes away what is to be measured. On the queueing model of
# tools/simulated_server: 3 of 60 steady runs of 120 requests with lognormal lengths have not settled by it, none of 160
# of 250 to 1,400 requests up to 90 % of capacity, where all 40 at 1.2 and 1.5 times the capacity are found.
TELLING = 200


@dataclass(frozen=True)
class Settled:
    """Where the measured window begins: the index of its first request. `settled` is False when the load still built up
    there, None where too few requests tell.
    """

    first: int
    settled: bool | None
    sentence: str


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


def find_settled(requests: Sequence[Request], least: int) -> Settled:
    """Where the measured window of a run begins. `requests` are all of one run in the order of sending; the first
    `least` of them, which were planned as warm-up, are none of it in any case.
    """
    half = max(len(requests) // 2, least)
    answered = [(index, request.ttft_ms) for index, request in enumerate(requests) if request.ttft_ms is not None]
    latency = _one_latency(requests) if requests else 0
    if len(answered) < TELLING:
        first = max(least, min(latency, half))
        return Settled(first, None, f"{len(answered)} answers are too few to tell where the load had settled")
    waits = _cut(np.log1p([max(0.0, wait) for _, wait in answered]))
    flying = _cut(np.log1p(in_flight(requests)))
    if waits is None or flying is None or latency > half:
        return Settled(half, False, f"not settled after half of {len(requests)} requests")
    first = max(answered[waits][0], flying, latency)
    if first <= least:
        return Settled(least, True, f"settled within the {least} requests of the warm-up")
    return Settled(first, True, f"settled after {first} of {len(requests)} requests, {first - least} more than planned")


def in_flight(requests: Sequence[Request]) -> list[int]:
    """Requests in flight at each one's sending, itself not counted. In the order of `requests`."""
    sent = np.array([request.sent_s for request in requests])
    ended = np.sort([request.end_s for request in requests])
    before = enumerate(np.searchsorted(ended, sent, side="right"))
    # One that ended when it was sent, or before by a broken clock, counts among those that had ended.
    return [max(0, int(position - done)) for position, done in before]


def _one_latency(requests: Sequence[Request]) -> int:
    """Requests sent during the first mean E2E: before it, what is in flight cannot be what it will be."""
    span = float(np.mean([request.end_s - request.sent_s for request in requests]))
    start = requests[0].sent_s
    return sum(request.sent_s - start < span for request in requests)


def _cut(values: NDArray[np.float64]) -> int | None:
    """MSER-5: the index at which the rest has the smallest squared standard error; None where that is not before half.

    Cuts in the second half are not looked at: the scatter of few batches is no estimate of it, and small by chance.
    """
    batches = values[: len(values) // BATCH * BATCH].reshape(-1, BATCH).mean(axis=1)
    last = len(batches) // 2
    # Rounded, or of values that are all the same the error of arithmetic would choose.
    errors = [round(float(np.var(batches[cut:])) / (len(batches) - cut), 12) for cut in range(last + 1)]
    best = int(np.argmin(errors))
    return None if best == last else best * BATCH
