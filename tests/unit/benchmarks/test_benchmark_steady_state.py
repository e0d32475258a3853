"""Where a run has settled, and how long it is."""

import numpy as np
from stand_in_data import request

from benchmarks.records import Request
from benchmarks.run_length import Length, plan_length
from benchmarks.steady_state import find_settled, in_flight, queue_memory

LEAST = Length(warmup=10, measured=100)


def run(ttft: list[float], e2e_s: float = 0.5, rate: float = 10.0) -> list[Request]:
    """A request every 1/rate seconds, with these first-token times in milliseconds."""
    return [
        request(
            number,
            sent_s=number / rate,
            due_s=number / rate,
            end_s=number / rate + e2e_s,
            ttft_ms=value,
            e2e_ms=e2e_s * 1000,
        )
        for number, value in enumerate(ttft)
    ]


def test_a_slow_start_is_left_out() -> None:
    draw = np.random.default_rng(1)
    values = [500 - 8 * n if n < 50 else 100 for n in range(400)]
    found = find_settled(run([value + draw.normal(0, 10) for value in values]), 20)
    assert found.settled
    assert 40 <= found.first <= 80


def test_a_steady_run_gives_away_little() -> None:
    draw = np.random.default_rng(2)
    found = find_settled(run(list(draw.exponential(100, 400))), 20)
    assert found.settled
    assert found.first <= 100


def test_at_least_one_latency_passes_before_the_window() -> None:
    found = find_settled(run([100.0] * 400, e2e_s=6.0), 20)
    assert found.first >= 60


def test_a_run_that_builds_up_all_along_has_not_settled() -> None:
    found = find_settled(run([100.0 + 5 * n for n in range(400)]), 20)
    assert found.settled is False
    assert "not settled" in found.sentence


def test_requests_without_an_answer_do_not_hide_the_rest() -> None:
    requests = run([100.0] * 400)
    broken = [request(n, sent_s=r.sent_s, end_s=r.end_s, ttft_ms=None, error="x") for n, r in enumerate(requests)]
    assert find_settled(requests[:200] + broken[200:300] + requests[300:], 20).settled
    assert find_settled(broken, 20).settled is None


def test_in_flight_counts_what_was_sent_and_not_answered() -> None:
    draw = np.random.default_rng(3)
    sent = np.sort(draw.uniform(0, 50, 200))
    requests = [request(n, sent_s=at, end_s=at + draw.exponential(2)) for n, at in enumerate(sent)]
    expected = [sum(other.sent_s < one.sent_s < other.end_s for other in requests) for one in requests]
    assert in_flight(requests) == expected


def test_a_window_spans_many_latencies_and_holds_enough_requests() -> None:
    slow = plan_length(rate=2, e2e_s=30, memory=1, least=LEAST, most=5000)
    assert slow.measured / 2 >= 10 * 30
    assert slow.warmup / 2 >= 3 * 30
    assert plan_length(rate=2, e2e_s=0.1, memory=1, least=LEAST, most=5000).measured == 100


def test_a_queue_with_a_long_memory_gets_a_longer_run_up_to_what_the_scenario_allows() -> None:
    long = plan_length(rate=2, e2e_s=0.1, memory=50, least=LEAST, most=5000)
    assert long.measured == 20 * 50
    assert LEAST.warmup < long.warmup <= long.measured
    assert plan_length(rate=2, e2e_s=0.1, memory=50, least=LEAST, most=300).measured == 300
    assert plan_length(rate=2, e2e_s=0.1, memory=50, least=LEAST, most=50).measured == LEAST.measured


def test_what_was_planned_as_warm_up_is_never_measured() -> None:
    draw = np.random.default_rng(2)
    found = find_settled(run(list(draw.exponential(100, 400))), 150)
    assert (found.first, found.settled) == (150, True)


def test_memory_is_that_of_what_is_in_flight() -> None:
    draw = np.random.default_rng(4)
    level, values = 0.0, []
    for _ in range(4000):  # each request's time resembles that of the one before: 0.9 gives a memory of 19
        level = 0.9 * level + draw.normal()
        values.append(5 + level)
    alike = [request(n, sent_s=float(n), end_s=n + max(value, 0.1)) for n, value in enumerate(values)]
    apart = [request(n, sent_s=float(n), end_s=n + float(value)) for n, value in enumerate(draw.exponential(1, 4000))]
    assert queue_memory(alike) > 3 * queue_memory(apart)
    assert queue_memory(apart[:5]) == 1


def test_too_short_a_run_does_not_say_that_it_has_not_settled() -> None:
    rising = run([100.0 + 5 * n for n in range(60)])
    assert find_settled(rising, 20).settled is None


def test_chance_takes_nothing_away_from_a_short_run() -> None:
    """39 requests, of which p90 needs 29: whichever cut MSER likes best, those planned for the window are measured."""
    for seed in range(50):
        values = list(np.random.default_rng(seed).exponential(100, 39))
        assert find_settled(run(values), 9).first == 9


def test_a_warm_up_is_part_of_the_window_or_what_was_asked_for_and_never_over_half() -> None:
    """By hand: 0.3 of 100; 3 latencies of 100 in flight; 8 memories of 5; half of 100; what was asked for."""
    assert plan_length(rate=2, e2e_s=0.1, memory=1, least=Length(0, 100), most=5000) == Length(30, 100)
    assert plan_length(rate=10, e2e_s=10, memory=1, least=Length(0, 100), most=5000) == Length(300, 1000)
    assert plan_length(rate=2, e2e_s=0.1, memory=5, least=Length(0, 100), most=5000) == Length(40, 100)
    assert plan_length(rate=2, e2e_s=0.1, memory=50, least=Length(0, 100), most=100) == Length(50, 100)
    assert plan_length(rate=2, e2e_s=0.1, memory=1, least=Length(70, 100), most=5000) == Length(70, 100)
