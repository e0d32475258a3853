"""The queueing model against what queueing theory and arithmetic say, on the virtual clock."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest

from tools.simulated_server.clock import VirtualClock
from tools.simulated_server.deployment import Answer, Deployment, Work
from tools.simulated_server.model import Arrangement, Speed
from tools.simulated_server.virtual import Arrival, play, poisson

SPEED = Speed(base=0.010, per_sequence=0.0001, per_prompt_token=0.00002)


def waits(rho: float, count: int, seed: int) -> list[float]:
    """Seconds in the queue of one server whose every service takes 0.1 s: a whole prompt fills a step."""
    service = Speed(base=0.0, per_sequence=0.0, per_prompt_token=0.0001, token_budget=1000)
    answers = play(Arrangement(service, decode=1), poisson(rho / 0.1, count, 1000, 1, seed), seed)
    return [answer.first - answer.at - 0.1 for answer in answers]


@pytest.mark.parametrize("rho", [0.3, 0.6, 0.8])
def test_one_engine_with_answers_of_one_token_is_an_m_d_1_queue(rho: float) -> None:
    """Pollaczek-Khinchine: the mean wait is rho * service / (2 * (1 - rho))."""
    found = waits(rho, 60_000, seed=5)
    assert statistics.mean(found) == pytest.approx(rho * 0.1 / (2 * (1 - rho)), rel=0.05)
    assert sum(wait < 1e-9 for wait in found) / len(found) == pytest.approx(1 - rho, rel=0.03)  # PASTA


def test_a_request_alone_takes_what_the_formula_says() -> None:
    [answer] = play(Arrangement(SPEED, decode=1), [Arrival(1.0, 1000, 11)], 0)
    assert answer.first - answer.at == pytest.approx(0.010 + 1000 * 0.00002)
    assert answer.end - answer.first == pytest.approx(10 * (0.010 + 0.0001))


def test_a_prompt_beside_answers_delays_them_and_not_with_prefill_apart() -> None:
    """The gap in a running answer while a prompt of 8,000 tokens is computed: aggregated 0.17 s, PD a plain step."""
    arrivals = [Arrival(0.0, 10, 100), Arrival(0.2, 8000, 1)]
    alone = play(Arrangement(SPEED, decode=1), arrivals[:1], 0)[0].end
    assert play(Arrangement(SPEED, decode=1), arrivals, 0)[0].end - alone == pytest.approx(0.16, abs=0.001)
    apart = Arrangement(SPEED, decode=1, prefill=1)
    assert play(apart, arrivals, 0)[0].end - play(apart, arrivals[:1], 0)[0].end == pytest.approx(0.0001, abs=0.0002)


def test_a_long_prompt_is_computed_in_chunks_of_the_token_budget() -> None:
    speed = replace(SPEED, token_budget=1000)
    [answer] = play(Arrangement(speed, decode=1), [Arrival(0.0, 2500, 1)], 0)
    assert answer.first == pytest.approx(3 * 0.010 + 2500 * 0.00002)


def test_no_more_sequences_than_allowed_decode_at_a_time() -> None:
    speed = replace(SPEED, max_sequences=2)
    answers = play(Arrangement(speed, decode=1), [Arrival(0.0, 1, 10)] * 3, 0)
    assert answers[2].first > answers[0].end


@pytest.mark.parametrize("arrangement", [Arrangement(SPEED, decode=3), Arrangement(SPEED, decode=2, prefill=2)])
def test_every_token_that_was_asked_for_is_written_once(arrangement: Arrangement) -> None:
    clock, arrivals = VirtualClock(), poisson(20, 300, 500, 30, seed=2)
    deployment = Deployment(arrangement, 1, clock)
    counts: dict[int, list[bool]] = {}

    class Counting:
        def __init__(self, number: int) -> None:
            self.number = number

        def token(self, when: float, last: bool) -> None:
            counts.setdefault(self.number, []).append(last)

        def lost(self, when: float, reason: str) -> None:
            raise AssertionError(reason)

    answers: list[Answer] = []
    for number, arrival in enumerate(arrivals):
        work = Work(arrival.prompt, arrival.answer)
        clock.at(
            arrival.at, lambda _, work=work, number=number: answers.append(deployment.submit(work, Counting(number))[1])
        )
    clock.run()
    assert [len(counts[number]) for number in range(300)] == [30] * 300
    assert all(lasts == [False] * 29 + [True] for lasts in counts.values())
    answering = [replica for replica in deployment.replicas if replica.role != "prefill"]
    assert sum(replica.counted.generation_tokens for replica in answering) == 300 * 30
    assert all(answer.at < answer.first < answer.end for answer in answers)
    assert all(replica.load == 0 for replica in deployment.replicas)


def test_the_same_seed_gives_the_same_and_another_one_does_not() -> None:
    arrangement = Arrangement(replace(SPEED, noise=0.1), decode=2, prefill=2, transfer_latency=0.001)
    arrivals = poisson(10, 200, 400, 20, seed=3)
    assert play(arrangement, arrivals, 7) == play(arrangement, arrivals, 7)
    assert play(arrangement, arrivals, 7) != play(arrangement, arrivals, 8)
    assert poisson(10, 200, 400, 20, seed=3) == arrivals != poisson(10, 200, 400, 20, seed=4)


def test_pd_answers_the_same_tokens_as_aggregated_and_its_first_ones_wait_for_the_transfer() -> None:
    arrivals = poisson(2, 100, 2000, 50, seed=1)
    together = play(Arrangement(SPEED, decode=1), arrivals, 0)
    apart = Arrangement(SPEED, decode=1, prefill=1, transfer_seconds=1e-5, transfer_latency=0.005)
    assert [answer.tokens for answer in play(apart, arrivals, 0)] == [answer.tokens for answer in together]
    [alone] = play(apart, [Arrival(0.0, 2000, 50)], 0)
    decode_step = 0.010 + 0.00002
    assert alone.first == pytest.approx(0.010 + 0.040 + 0.005 + 0.020 + decode_step)


def test_the_router_spreads_load_by_what_is_under_way() -> None:
    """Two choices of two replicas: of two requests at once each gets one."""
    answers = play(Arrangement(SPEED, decode=2), [Arrival(0.0, 5000, 1), Arrival(0.0, 5000, 1)], 0)
    assert answers[0].first == answers[1].first


def test_a_share_of_the_prompt_in_the_prefix_cache_is_not_computed() -> None:
    [answer] = play(Arrangement(SPEED, decode=1, prefix_hit=0.6), [Arrival(0.0, 1000, 1)], 0)
    assert answer.first == pytest.approx(0.010 + 400 * 0.00002)


def test_a_request_that_is_given_up_frees_its_engine() -> None:
    clock = VirtualClock()
    deployment = Deployment(Arrangement(SPEED, decode=1), 0, clock)
    number, given_up = deployment.submit(Work(10, 1000))
    _, other = deployment.submit(Work(10, 5))
    clock.at(0.025, lambda _: deployment.abort(number))
    clock.run()
    assert given_up.end == 0.0
    assert other.tokens == 5
    assert clock.now() < 0.1
