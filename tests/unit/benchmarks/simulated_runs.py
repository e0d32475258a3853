"""Runs that never happened: the queueing model of tools/simulated_server on its virtual clock, as the benchmark's
records would tell them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from stand_in_data import request, scenario_data, target_data

from benchmarks.client_ceiling import demand
from benchmarks.client_watch import ClientSample
from benchmarks.evidence import KvProof
from benchmarks.records import Request
from benchmarks.scenario import Scenario
from benchmarks.summary import summarize
from benchmarks.target import Fabric, Target
from benchmarks.transport import Transport
from benchmarks.validity import Seen
from tools.simulated_server.model import Arrangement, Speed
from tools.simulated_server.virtual import Answer, Arrival, play, poisson

PROMPT, ANSWER = 512, 16
SPEED = Speed(base=0.02, per_sequence=0.0004, per_prompt_token=4e-5, max_sequences=64, noise=0.1)
AGGREGATED = Arrangement(SPEED, decode=2)
PD = Arrangement(SPEED, decode=1, prefill=1, transfer_seconds=2e-6, transfer_latency=0.002)
EPOCH = 1.8e9
GATE = Fabric(gate="passed", reason="rc_mlx5")


def capacity(arrangement: Arrangement) -> float:
    """Requests a second that the busiest stage can carry: every step as full as it may be."""
    speed = arrangement.speed
    prefill = PROMPT * speed.per_prompt_token
    decode = ANSWER * (speed.per_sequence + speed.base / speed.max_sequences)
    if not arrangement.prefill:
        return arrangement.decode / (prefill + decode)
    batch = speed.token_budget // PROMPT
    return min(arrangement.prefill / (prefill + speed.base / batch), arrangement.decode / decode)


def scenario(rate: float, warmup_s: float, window_s: float) -> Scenario:
    slo = [{"metric": "ttft", "statistic": "p90", "bound": 2, "unit": "s"}]
    data = scenario_data(isl=PROMPT, osl=ANSWER, rates=[rate], warmup_s=warmup_s, window_s=window_s, slo=slo)
    return Scenario.model_validate(data)


@lru_cache(maxsize=64)
def clean(
    arrangement: Arrangement = PD, rate: float = 8.0, seed: int = 1, warmup_s: float = 10.0, window_s: float = 60.0
) -> Seen:
    """A run in which nothing is wrong, with everything collected that can be."""
    asked = scenario(rate, warmup_s, window_s)
    count = asked.warmup_requests(rate) + asked.measured_requests(rate)
    return seen(asked, rate, answered(arrangement, poisson(rate, count, PROMPT, ANSWER, seed), seed), seed)


def answered(arrangement: Arrangement, arrivals: Sequence[Arrival], seed: int) -> list[Request]:
    return [as_request(number, answer) for number, answer in enumerate(play(arrangement, arrivals, seed))]


def as_request(number: int, answer: Answer) -> Request:
    """Tokens after the first are spread evenly: the model keeps no times of single ones."""
    gap = 1000 * (answer.end - answer.first) / max(answer.tokens - 1, 1)
    return request(
        number,
        sent_s=EPOCH + answer.at,
        due_s=EPOCH + answer.at - 0.0005,
        end_s=EPOCH + answer.end,
        prompt_tokens=PROMPT,
        output_tokens=answer.tokens,
        planned_prompt=PROMPT,
        asked=answer.tokens,
        ttft_ms=1000 * (answer.first - answer.at),
        e2e_ms=1000 * (answer.end - answer.at),
        gaps_ms=(gap,) * (answer.tokens - 1),
    )


def seen(asked: Scenario, rate: float, requests: Sequence[Request], seed: int = 1) -> Seen:
    """Everything around those requests as it should be."""
    times = [r.e2e_ms / 1000 for r in requests if r.e2e_ms is not None]
    count = len(requests)
    proof = KvProof(verdict="proven", reasons=[], requests=count, counted_bytes=1, foreign_requests=0)
    proof.transport = Transport(label="rdma", outcome="ok", reason="counted", gate=GATE)
    return Seen(
        asked,
        summarize(asked, rate, requests),
        requests,
        proof,
        alike=0,
        target=Target.model_validate(target_data("http://127.0.0.1:9")),
        hit_rate=0.0,
        engine_s=1.1 * sum(times) / len(times),
        client=samples(requests, seed),
        demand=demand(rate, [(PROMPT, ANSWER)], workers=1),
    )


def samples(requests: Sequence[Request], seed: int) -> list[ClientSample]:
    """A look each second, from before the first request to after the last answer."""
    draw = random.Random(seed)
    start, end = requests[0].sent_s - 5, max(r.end_s for r in requests)
    return [
        ClientSample(
            wall_s=start + second + draw.uniform(0, 1e-4),
            monotonic_s=1000.0 + second,
            busiest=1.0 if second < 4 else draw.uniform(0.1, 0.3),
            wanting=1.0 if second < 4 else draw.uniform(0.3, 0.4),
            tree=draw.uniform(0.3, 0.6),
            machine=draw.uniform(0.2, 0.5),
        )
        for second in range(int(end - start) + 2)
    ]


def with_requests(run: Seen, requests: Sequence[Request]) -> Seen:
    """The same run with other records."""
    return replace(run, requests=requests, summary=summarize(run.scenario, run.summary.offered, requests))
