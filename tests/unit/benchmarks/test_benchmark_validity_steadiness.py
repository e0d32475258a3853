"""Steadiness and arrivals, on the queueing model: silence in clean runs near saturation too, and a find in what is not.

Service times, queues and their correlation are the model's; utilisation is the share of the model's capacity.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import AGGREGATED, ANSWER, PD, PROMPT, answered, capacity, clean, scenario, seen, with_requests

from benchmarks.validity import Seen, check_rate, only_overload
from benchmarks.validity.load import _deviations
from benchmarks.validity.poisson import poissonness
from tools.simulated_server.model import Arrangement
from tools.simulated_server.virtual import Arrival, poisson

UTILISATIONS = (0.2, 0.5, 0.7, 0.8, 0.9)
OVERLOAD = {"window", "warm-up", "queue", "ttft-trend", "change", "littles-law", "drain", "delivery", "failed-requests"}


def faults(run: Seen) -> set[str]:
    return {finding.id for finding in check_rate(run) if finding.outcome == "fault"}


def at_rate(arrangement: Arrangement, utilisation: float, seed: int) -> Seen:
    """Warm-up and window as long as a run near saturation needs: the queue remembers for many service times."""
    rate = utilisation * capacity(arrangement)
    return clean(arrangement, round(rate, 2), seed, warmup_s=20.0, window_s=60.0)


def test_twenty_clean_runs_have_no_fault() -> None:
    found = {
        (seed, utilisation): faults(at_rate((AGGREGATED, PD)[seed % 2], utilisation, seed))
        for seed in range(4)
        for utilisation in UTILISATIONS
    }
    assert len(found) == 20
    assert {run: wrong for run, wrong in found.items() if wrong} == {}


def test_answers_of_very_different_lengths_are_no_fault_in_short_windows() -> None:
    """Lognormal lengths, of which one in a hundred is ten times the middle one, over some twenty mean latencies."""
    for seed in range(20):
        draw, rate = random.Random(seed), 4.0
        asked = scenario(rate, 5.0, 25.0).model_copy(update={"osl": 2})
        count = asked.warmup_requests(rate) + asked.measured_requests(rate)
        times = [arrival.at for arrival in poisson(rate, count, PROMPT, ANSWER, seed)]
        arrivals = [Arrival(at, PROMPT, min(400, 2 + round(draw.lognormvariate(3, 1)))) for at in times]
        assert faults(seen(asked, rate, answered(PD, arrivals, seed))) == set()


@pytest.mark.parametrize("arrangement", [AGGREGATED, PD], ids=["aggregated", "pd"])
@pytest.mark.parametrize("load", [1.2, 1.5])
def test_more_than_a_service_can_carry_is_found_and_is_nothing_but_that(arrangement: Arrangement, load: float) -> None:
    for seed in range(2):
        run = at_rate(arrangement, load, seed)
        assert faults(run) & {"queue", "ttft-trend"}
        assert faults(run) <= OVERLOAD
        assert only_overload(check_rate(run))


def test_a_service_that_becomes_slower_is_found() -> None:
    """At a third of its capacity, and by the end at twice the time for each step."""
    for seed in range(5):
        run = at_rate(PD, 0.33, seed)
        first, last = run.requests[0].sent_s, run.requests[-1].sent_s
        requests = []
        for request in run.requests:
            by = 1 + (request.sent_s - first) / (last - first)
            e2e, ttft = by * (request.e2e_ms or 0), by * (request.ttft_ms or 0)
            requests.append(replace(request, e2e_ms=e2e, ttft_ms=ttft, end_s=request.sent_s + e2e / 1000))
        assert "queue" in faults(seen(run.scenario, run.summary.offered, requests))


@pytest.mark.parametrize("by", [0.5, 1.5, 3.0])
@pytest.mark.parametrize(("start", "end"), [(0.6, 1.0), (0.75, 1.0), (0.9, 1.0), (0.5, 0.7)])
def test_a_service_that_becomes_another_at_once_is_found(by: float, start: float, end: float) -> None:
    """A step that stays, and one that is taken back: a line through the window sees neither."""
    run = clean(PD, 8.0, seed=4, window_s=120.0)
    first, last = run.requests[0].sent_s, run.requests[-1].sent_s
    requests = [
        replace(r, e2e_ms=by * e2e, ttft_ms=by * ttft, end_s=r.sent_s + by * e2e / 1000)
        if start < (r.sent_s - first) / (last - first) <= end and (e2e := r.e2e_ms) and (ttft := r.ttft_ms)
        else r
        for r in run.requests
    ]
    assert faults(with_requests(run, requests)) & {"change", "warm-up"}


@pytest.mark.filterwarnings("error")
def test_answers_that_end_when_they_were_sent_are_faults_and_no_error() -> None:
    run = clean()
    assert {"times", "littles-law"} <= faults(
        seen(run.scenario, 8.0, [replace(r, end_s=r.sent_s, ttft_ms=0.0, e2e_ms=0.0) for r in run.requests])
    )


def with_arrivals(times: Callable[[float, int, random.Random], list[float]], seed: int) -> Seen:
    rate, asked = 8.0, scenario(8.0, 10.0, 60.0)
    count = asked.warmup_requests(rate) + asked.measured_requests(rate)
    arrivals = [Arrival(when, PROMPT, ANSWER) for when in times(rate, count, random.Random(seed))]
    return seen(asked, rate, answered(PD, arrivals, seed))


def even(rate: float, count: int, _: random.Random) -> list[float]:
    return [(number + 1) / rate for number in range(count)]


def nearly_even(rate: float, count: int, draw: random.Random) -> list[float]:
    """Every other millisecond comes from a client with a jitter of a fifth of the gap."""
    return sorted((number + draw.gauss(0, 0.2)) / rate for number in range(1, count + 1))


def bursts(rate: float, count: int, _: random.Random) -> list[float]:
    """Ten at once, a millisecond apart."""
    return [(number // 10 + 1) * 10 / rate + 0.001 * (number % 10) for number in range(count)]


def pairs(rate: float, count: int, draw: random.Random) -> list[float]:
    """Two at a time, at random moments."""
    now, times = 0.0, list[float]()
    while len(times) < count:
        now += draw.expovariate(rate / 2)
        times += [now, now + 1e-4]
    return times[:count]


def comes_and_goes(rate: float, count: int, draw: random.Random) -> list[float]:
    """Exponential gaps, of half the rate and one and a half times the rate by turns of five seconds."""
    now, times = 0.0, list[float]()
    for _ in range(count):
        now += draw.expovariate(rate * (0.5 if now % 10 < 5 else 1.5))
        times.append(now)
    return times


@pytest.mark.parametrize("times", [even, nearly_even, bursts, pairs, comes_and_goes])
def test_arrivals_that_are_not_poisson_are_found(times: Callable[[float, int, random.Random], list[float]]) -> None:
    for seed in range(3):
        assert "arrivals" in faults(with_arrivals(times, seed))


@pytest.mark.parametrize("count", [30, 100, 1000])
def test_poisson_arrivals_are_taken_for_what_they_are(count: int) -> None:
    """Each of three tests is wrong once in a thousand times."""
    wrong = 0
    for seed in range(1000):
        times = np.cumsum(np.random.default_rng(seed).exponential(size=count))
        found = poissonness(list(times))
        assert found is not None
        fits = found.gaps_fit and found.counts_fit and abs(_deviations(times[-1] - times[0], count - 1)) < 3.3
        wrong += not fits
    assert wrong <= 8


def test_a_burst_of_fifty_at_even_spacing_and_without_warm_up_is_called_what_it_is() -> None:
    """As the raw data of the reference post are: 50 requests in 12.5 s, each of which takes longer than that."""
    asked = scenario(4.0, 0.01, 12.5).model_copy(update={"min_requests": 5})
    slow = replace(PD, speed=replace(PD.speed, base=1.6))
    run = seen(asked, 4.0, answered(slow, [Arrival(n / 4, PROMPT, ANSWER) for n in range(51)], 1))
    assert faults(run) >= {"arrivals", "warm-up", "window"}


def test_a_seed_gives_the_same_run() -> None:
    arrivals = poisson(8.0, 50, PROMPT, ANSWER, 3)
    assert answered(PD, arrivals, 3) == answered(PD, arrivals, 3)
