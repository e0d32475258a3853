"""Where a run has settled, and how long it is."""

import numpy as np
from stand_in_data import request

from benchmarks.records import Request
from benchmarks.steady_state import find_settled, in_flight, plan_length


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
    found = find_settled(run([value + draw.normal(0, 10) for value in values]))
    assert found.settled
    assert 40 <= found.first <= 80


def test_a_steady_run_gives_away_little() -> None:
    draw = np.random.default_rng(2)
    found = find_settled(run(list(draw.exponential(100, 400))))
    assert found.settled
    assert found.first <= 100


def test_at_least_one_latency_passes_before_the_window() -> None:
    found = find_settled(run([100.0] * 400, e2e_s=6.0))
    assert found.first >= 60


def test_a_run_that_builds_up_all_along_has_not_settled() -> None:
    found = find_settled(run([100.0 + 5 * n for n in range(400)]))
    assert not found.settled
    assert "not settled" in found.sentence


def test_requests_without_an_answer_do_not_hide_the_rest() -> None:
    requests = run([100.0] * 400)
    broken = [request(n, sent_s=r.sent_s, end_s=r.end_s, ttft_ms=None, error="x") for n, r in enumerate(requests)]
    assert find_settled(requests[:200] + broken[200:300] + requests[300:]).settled
    assert not find_settled(broken).settled


def test_in_flight_counts_what_was_sent_and_not_answered() -> None:
    draw = np.random.default_rng(3)
    sent = np.sort(draw.uniform(0, 50, 200))
    requests = [request(n, sent_s=at, end_s=at + draw.exponential(2)) for n, at in enumerate(sent)]
    expected = [sum(other.sent_s < one.sent_s < other.end_s for other in requests) for one in requests]
    assert in_flight(requests) == expected


def test_a_window_spans_many_latencies_and_holds_enough_requests() -> None:
    slow = plan_length(rate=2, e2e_s=30, fewest=100)
    assert slow.measured / 2 >= 10 * 30
    assert slow.warmup / 2 >= 3 * 30
    assert plan_length(rate=2, e2e_s=0.1, fewest=100).measured == 100
