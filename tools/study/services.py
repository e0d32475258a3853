"""The simulated services of the studies, and runs on them.

Speeds are chosen to resemble Qwen3-235B-A22B-FP8 on eight MI325X: decode steps of about ten milliseconds and 100,000
prompt tokens a second, so that the bounds of the reference post's scenarios are met at a few requests a second. They
are no measurement of such hardware.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.records import Request
from benchmarks.run_length import Length
from benchmarks.scenario import MOST_REQUESTS
from benchmarks.search import Limits
from benchmarks.slo import Slo
from tools.simulated_server.model import Arrangement, Speed
from tools.simulated_server.virtual import Answer, play, poisson
from tools.study.searching import Measure

SPEED = Speed(base=0.008, per_sequence=0.0001, per_prompt_token=0.00001, noise=0.03)


@dataclass(frozen=True)
class Service:
    """A simulated deployment under one load (tokens), and the SLO asked of it."""

    name: str
    arrangement: Arrangement
    isl: int
    osl: int
    slo: Sequence[Slo]


# What the searches of the studies know beforehand: a decade of rates, and that one request takes some seconds.
LIMITS = Limits(lowest=2, highest=20)
FIRST_E2E_S = 3.0
LEAST, MOST = Length(warmup=0, measured=2000), MOST_REQUESTS

TPOT = Slo(metric="tpot", statistic="p90", bound=25, unit="ms")
TTFT = Slo(metric="ttft", statistic="p90", bound=3, unit="s")
MEAN_TPOT = Slo(metric="tpot", statistic="mean", bound=25, unit="ms")

AGGREGATED = Service("aggregated, 3 replicas", Arrangement(SPEED, decode=3), 16384, 256, (TPOT, TTFT))
DISAGGREGATED = Service(
    "2 prefill, 1 decode",
    Arrangement(SPEED, decode=1, prefill=2, transfer_seconds=2e-6, transfer_latency=0.005),
    16384,
    256,
    (TPOT, TTFT),
)


def measure_on(service: Service, seed: int) -> Measure:
    """Runs on a service, each with arrivals and a scatter of its own that follow from `seed`."""
    number = itertools.count()

    def measure(rate: float, length: Length) -> list[Request]:
        return simulate(service, rate, length.total, seed * 1_000 + next(number))

    return measure


def simulate(service: Service, rate: float, requests: int, seed: int) -> list[Request]:
    """Records of one run that starts with an empty service."""
    arrivals = poisson(rate, requests, service.isl, service.osl, seed)
    answers = play(service.arrangement, arrivals, seed)
    return [_request(number, service, answer) for number, answer in enumerate(answers)]


def _request(number: int, service: Service, answer: Answer) -> Request:
    gap = (answer.end - answer.first) * 1000 / (answer.tokens - 1)
    return Request(
        sent_s=answer.at,
        due_s=answer.at,
        end_s=answer.end,
        prompt_id=str(number),
        prompt_tokens=service.isl,
        output_tokens=answer.tokens,
        ttft_ms=(answer.first - answer.at) * 1000,
        e2e_ms=(answer.end - answer.at) * 1000,
        gaps_ms=(gap,),
        error=None,
        asked=service.osl,
        planned_prompt=service.isl,
    )
