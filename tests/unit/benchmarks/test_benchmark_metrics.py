"""Waiting for counters that the exporter shows late."""

from __future__ import annotations

import pytest
from stand_in_client import ask
from stand_in_server import StandIn

from benchmarks.errors import BenchmarkError
from benchmarks.evidence import TRANSFERS, WATCHED
from benchmarks.metrics import Counters, Settling, parse, scrape, settle
from benchmarks.target import Target

QUICK = Settling(quiet_s=0.4, limit_s=3, poll_s=0.05)


def test_it_waits_until_late_counters_have_arrived(service: StandIn, target: Target) -> None:
    service.behaviour.publish_delay_s = 1.5
    scrape(target.metrics_urls)
    ask(target.url, (10, 20))
    said: list[str] = []
    patient = Settling(quiet_s=5, limit_s=20, poll_s=0.05)
    settled = settle(
        lambda: scrape(target.metrics_urls), WATCHED, lambda now: now.total(TRANSFERS) == 2, said.append, patient
    )
    assert settled.total(TRANSFERS) == 2
    assert "waiting for the service's counters" in said[0]


def test_it_gives_up_when_nothing_moves(target: Target) -> None:
    settled = settle(lambda: scrape(target.metrics_urls), WATCHED, lambda _: False, lambda _: None, QUICK)
    assert settled.total(TRANSFERS) is None


def test_it_gives_up_when_counters_never_stop() -> None:
    values = iter(range(10_000))
    settled = settle(
        lambda: Counters({(TRANSFERS, frozenset()): next(values)}),
        WATCHED,
        lambda _: False,
        lambda _: None,
        Settling(quiet_s=10, limit_s=0.3, poll_s=0.02),
    )
    assert settled.total(TRANSFERS)


def test_series_of_several_replicas_add_up() -> None:
    counters = parse('# TYPE x_total counter\nx_total{a="1"} 2\nx_total{a="2"} 3\n')
    assert counters.total("x_total") == 5
    assert counters.total("y_total") is None


def test_an_endpoint_that_is_not_there_is_one_line(service: StandIn) -> None:
    with pytest.raises(BenchmarkError, match=r"answered HTTP 404; is it a Prometheus endpoint"):
        scrape([f"{service.url}/nothing"])
    with pytest.raises(BenchmarkError, match="does not speak Prometheus text"):
        scrape([f"{service.url}/v1/models"])
