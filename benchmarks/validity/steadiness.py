"""Was the service in a steady state while it was measured, and for long enough?"""

from __future__ import annotations

import numpy as np

from benchmarks.run_length import MEMORIES
from benchmarks.steady_state import queue_memory as memory_of
from benchmarks.summary import samples_needed
from benchmarks.validity.change import Change, find_change
from benchmarks.validity.finding import Outcome, Verdict, fault, fault_if, kind, note, ok
from benchmarks.validity.seen import Seen
from benchmarks.validity.trend import BATCHES, Trend, batch_means, in_flight, trend

# Mean E2E latencies that a window lasts at least: below that most requests began or ended outside of it.
WINDOW = 10
# A rise from one end of the fitted line to the other, over the mean, that counts as a trend, and how many errors of the
# slope it must be for a note and for a fault. On the queueing model of tools/simulated_server, 720 clean runs at 30, 80
# and 90 % of its capacity, of 200 to 3,400 requests: no fault, 7 notes (5 of the 240 at 90 %). At 1.1 times the
# capacity 22 of 40 windows of 15 s and 34 of 40 of 60 s are faults, at 1.2 times 38 and 40.
RISE = 0.25
SIGMAS_NOTE, SIGMAS_FAULT = 5.0, 8.0
# The same of a stretch that is unlike the rest of the window. On that model, of 400 clean runs of 30 and 60 s at 20 to
# 90 % of its capacity 2 are beyond 8 errors and none beyond 8.3; steps by half are at 12 to 29 wherever they are.
CHANGE_NOTE, CHANGE_FAULT = 9.0, 12.0
_GRAVITY: list[Outcome] = ["ok", "note", "fault"]
# How far both sides of Little's law may be apart, and how many standard errors they must be.
LITTLE = 0.2
LITTLE_SIGMAS = 4.0
# Longest answers of the window's first half that a drain may last.
DRAIN = 1.5


@kind("samples")
def samples(seen: Seen) -> Verdict | None:
    """Too few complete answers for a statistic of the SLO: 5 for p50, 29 for p90, 299 for p99. The upper end of its
    interval does not exist."""
    short: list[str] = []
    for slo in seen.bounds:
        needed = samples_needed({"p50": 0.5, "p90": 0.9, "p99": 0.99}.get(slo.statistic, 0.5))
        if seen.summary.latency(slo.metric).count < needed:
            short.append(f"{slo.statistic} of {slo.metric.upper()} needs {needed}")
    answers = f"{seen.summary.good} complete answers"
    if short:
        return fault(f"{answers} are too few: {', '.join(short)}", good=seen.summary.good)
    return ok(f"{answers} support every statistic of the SLO", good=seen.summary.good)


@kind("window", overload=True)
def window(seen: Seen) -> Verdict | None:
    """The window is shorter than ten mean E2E latencies. Such a window sees a burst fill the service, and not its
    steady state."""
    long, mean = seen.summary.window_s, seen.mean_e2e_s
    if not mean:
        return None
    return fault_if(
        long < WINDOW * mean,
        f"the window lasted {long:.1f} s, {long / mean:.1f} mean E2E latencies of {mean:.2f} s; {WINDOW} are needed",
        window_s=long,
        mean_e2e_s=mean,
    )


@kind("queue-memory")
def queue_memory(seen: Seen) -> Verdict | None:
    """The window is short against the time over which the queue resembles itself: a note. A run at the same rate may
    then well give other latencies, and an interval from this window alone is too narrow."""
    if len(seen.measured) < 2 * BATCHES:
        return None
    memory = memory_of(seen.measured)
    times = len(seen.measured) / memory
    sentence = (
        f"what is in flight resembles itself over {memory:.0f} requests; the window holds {times:.0f} times as many"
    )
    if times < MEMORIES / 2:
        return note(f"{sentence}, and {MEMORIES} are wanted: repeat it, or raise max_requests", memory=memory)
    return ok(sentence, memory=memory)


@kind("warm-up", overload=True)
def warm_up(seen: Seen) -> Verdict | None:
    """No warm-up, one shorter than the mean E2E, or a load that still had not settled (MSER-5 on TTFT and requests in
    flight) when half of all requests were sent. The window then sees the service fill."""
    mean = seen.mean_e2e_s
    if not seen.warmup:
        return fault("no warm-up: the first measured requests found an empty service", warmup_s=0.0, mean_e2e_s=mean)
    lasted = seen.window[0] - seen.warmup[0].sent_s if seen.measured else 0.0
    sentence = f"{len(seen.warmup)} warm-up requests in {lasted:.1f} s, mean E2E {mean:.2f} s; {seen.summary.settling}"
    outcome: Outcome = "note" if seen.summary.settled is None else "ok" if seen.summary.settled else "fault"
    return Verdict("fault" if lasted < mean else outcome, sentence, {"warmup_s": lasted, "mean_e2e_s": mean})


@kind("queue", overload=True)
def queue(seen: Seen) -> Verdict | None:
    """The number of requests in flight, or the time that each takes, grows through the window (ten batch means, and a
    slope that the correlation of successive requests does not explain). The service does not keep up; its latencies
    depend on when one stops."""
    if len(seen.measured) < 2 * BATCHES:
        return fault("too few requests to see whether a queue grows", measured=len(seen.measured))
    # Hanging requests show in the first alone; the second is free of the randomness of arrivals.
    flying = trend(in_flight(seen.requests, *seen.window))
    taking = trend(batch_means([request.end_s - request.sent_s for request in seen.measured]))
    outcome = max(_outcome(flying), _outcome(taking), key=_GRAVITY.index)
    grows = {"ok": "", "note": "the queue may grow: ", "fault": "the queue grows: "}[outcome]
    sentence = (
        f"{max(flying.first, 0):.1f} in flight at the beginning of the window, {max(flying.last, 0):.1f} at its end; "
        f"a request takes {max(taking.first, 0):.2f} s, then {max(taking.last, 0):.2f} s"
    )
    return Verdict(outcome, grows + sentence, {**_numbers("in_flight", flying), **_numbers("e2e_s", taking)})


@kind("ttft-trend", overload=True)
def ttft_trend(seen: Seen) -> Verdict | None:
    """TTFT rises or falls through the window, judged as the queue is. Prompts wait longer and longer, or the service
    was still waking up."""
    values = [request.ttft_ms for request in seen.good if request.ttft_ms is not None]
    if len(values) < 2 * BATCHES:
        return note("too few answers to see whether TTFT rises", answers=len(values))
    found = trend(batch_means(values))
    outcome = _outcome(found if found.sigmas > 0 else found.reversed)
    way = "rises" if found.sigmas > 0 else "falls"
    said = {"ok": "TTFT ", "note": f"perhaps TTFT {way}: ", "fault": f"TTFT {way}: "}[outcome]
    sentence = f"{max(found.first, 0):.0f} ms at the beginning of the window, {max(found.last, 0):.0f} ms at its end"
    return Verdict(outcome, said + sentence, {**_numbers("ttft_ms", found)})


@kind("change", overload=True)
def change(seen: Seen) -> Verdict | None:
    """TTFT or E2E of a stretch of the window is over a quarter higher or lower than that of the rest: a step, or a
    while of something else (means of twenty batches). The numbers are then a mixture of two services. Not judged where
    a trace sets the lengths, which may change themselves, and with fewer than 200 answers."""
    if seen.scenario.trace is not None:
        return None
    times = {
        "TTFT": [r.ttft_ms for r in seen.good if r.ttft_ms is not None],
        "E2E": [r.e2e_ms for r in seen.good if r.e2e_ms is not None],
    }
    found = {name: change for name, values in times.items() if (change := find_change(values)) is not None}
    if not found:
        return None
    name, worst = max(found.items(), key=lambda item: (_GRAVITY.index(_changed(item[1])), item[1].sigmas))
    sentence = (
        f"{name} from {100 * worst.start:.0f} to {100 * worst.end:.0f} % of the window is {worst.times:.2f} times that "
        "of the rest"
    )
    outcome = _changed(worst)
    said = {"ok": "no stretch stands out: ", "note": "perhaps the service changed: ", "fault": "the service changed: "}
    return Verdict(outcome, said[outcome] + sentence, {"times": worst.times, "sigmas": worst.sigmas})


@kind("littles-law", overload=True)
def littles_law(seen: Seen) -> Verdict | None:
    """Requests in flight are not the completed rate times the mean E2E (Little's law), within 20 % and chance. In a
    steady state they must be: requests were lost, or the state is not steady."""
    start, end = seen.window
    ended = [r for r in seen.requests if start <= r.end_s <= end]
    if not ended or end <= start:
        return None
    flying = float(in_flight(seen.requests, start, end, 1)[0])
    rate = len(ended) / (end - start)
    mean = sum(r.end_s - r.sent_s for r in ended) / len(ended)
    apart = flying / (rate * mean) - 1 if rate * mean > 0 else 0.0
    # The two differ by what the window's ends cut off, which in a steady state is alike at both: requests that began
    # before it, and requests that had not ended. Both come one by one, so their squares sum up to the variance.
    cut = [max(0.0, start - r.sent_s) for r in ended]
    cut += [end - max(r.sent_s, start) for r in seen.requests if r.sent_s <= end < r.end_s]
    if flying <= 0:
        return fault("no request was in flight at any time: all ended when they were sent", in_flight=flying)
    chance = LITTLE_SIGMAS * sum(part**2 for part in cut) ** 0.5 / (flying * (end - start))
    return fault_if(
        abs(apart) > max(LITTLE, chance),
        f"mean in flight {flying:.2f}; completed rate {rate:.2f} req/s × mean E2E {mean:.2f} s = {rate * mean:.2f} "
        f"({100 * apart:+.0f} %)",
        in_flight=flying,
        completed_per_s=rate,
        mean_e2e_s=mean,
        chance=chance,
    )


@kind("drain", overload=True)
def drain(seen: Seen) -> Verdict | None:
    """After the last request was sent, answers went on for far longer than any took before, for its length. The
    engines, or the delivery of their tokens, had fallen behind."""
    first_half = seen.measured[: len(seen.measured) // 2]
    if not first_half:
        return None
    last = max(seen.requests, key=lambda request: request.end_s)
    longest = max(r.end_s - r.sent_s for r in first_half)
    # An answer of many tokens may take as long as the slowest of the others took for each of its tokens.
    slowest = max((r.end_s - r.sent_s) / (r.output_tokens or r.asked) for r in first_half)
    allowed = DRAIN * max(longest, slowest * (last.output_tokens or last.asked))
    lasted = seen.summary.drain_s
    return fault_if(
        lasted > allowed,
        f"the last answer ended {lasted:.1f} s after the last request was sent; "
        f"the longest of the window's first half took {longest:.1f} s",
        drain_s=lasted,
        longest_s=longest,
        allowed_s=allowed,
    )


def _outcome(found: Trend) -> Outcome:
    if found.rise <= RISE or found.sigmas <= SIGMAS_NOTE:
        return "ok"
    return "fault" if found.sigmas > SIGMAS_FAULT else "note"


def _changed(found: Change) -> Outcome:
    if found.size <= RISE or found.sigmas <= CHANGE_NOTE:
        return "ok"
    return "fault" if found.sigmas > CHANGE_FAULT else "note"


def _numbers(of: str, found: Trend) -> dict[str, float]:
    # JSON has no infinity, which is what a perfect line gives.
    sigmas = float(np.clip(found.sigmas, -1e6, 1e6))
    return {f"{of}_first": found.first, f"{of}_last": found.last, f"{of}_rise": found.rise, f"{of}_sigmas": sigmas}
