"""Waiting for counters that the exporter shows late."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stand_in_client import ask
from stand_in_server import StandIn

from benchmarks.errors import BenchmarkError
from benchmarks.evidence import TRANSFERS, WATCHED
from benchmarks.metrics import EXPORT_INTERVAL_S, Counters, Settling, parse, scrape, settle
from benchmarks.target import Target

QUICK = Settling(quiet_s=0.4, confirm_s=0.2, limit_s=3, poll_s=0.05)


def test_it_waits_until_late_counters_have_arrived(service: StandIn, target: Target) -> None:
    service.behaviour.publish_delay_s = 1.5
    scrape(target.metrics_urls)
    ask(target.url, (10, 20))
    said: list[str] = []
    patient = Settling(quiet_s=5, confirm_s=0.2, limit_s=20, poll_s=0.05)
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


def readings(*given: float | BenchmarkError) -> Callable[[], Counters]:
    """A reader that returns or raises these one after another, and then the last for ever."""
    waiting = list(given)

    def read() -> Counters:
        now = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(now, BenchmarkError):
            raise now
        return Counters({(TRANSFERS, frozenset()): now})

    return read


def test_a_count_that_is_reached_is_confirmed_by_silence() -> None:
    """Another replica, which exports later, shows foreign requests after the expected number has been reached."""
    settled = settle(readings(2, 2, 2, 5), WATCHED, lambda now: (now.total(TRANSFERS) or 0) >= 2, lambda _: None, QUICK)
    assert settled.total(TRANSFERS) == 5


def test_the_silence_outlasts_an_export_interval() -> None:
    assert EXPORT_INTERVAL_S < Settling().confirm_s < Settling().quiet_s < Settling().limit_s


@pytest.mark.parametrize("first", [True, False])
def test_a_scrape_that_fails_is_repeated(first: bool) -> None:
    down = BenchmarkError("metrics endpoint x does not answer")
    read = readings(down, down, 2) if first else readings(1, down, down, 2)
    said: list[str] = []
    settled = settle(read, WATCHED, lambda now: now.total(TRANSFERS) == 2, said.append, QUICK)
    assert settled.total(TRANSFERS) == 2
    assert sum("trying again" in line and "x does not answer" in line for line in said) == 2


def test_scrapes_that_fail_to_the_end_are_one_line() -> None:
    short = Settling(quiet_s=10, limit_s=0.2, poll_s=0.02)
    read = readings(1, BenchmarkError("HTTP 500"), BenchmarkError("no answer"))
    with pytest.raises(BenchmarkError, match=r"^no answer \(given up after 0 s\)$"):
        settle(read, WATCHED, lambda _: False, lambda _: None, short)


def test_a_scrape_that_fails_leaves_the_last_whole_one(service: StandIn, tmp_path: Path) -> None:
    whole = [f"{service.url}/metrics"] * 2
    scrape(whole, tmp_path / "after")
    ask(service.url, (10,))
    with pytest.raises(BenchmarkError):
        scrape([whole[0], f"{service.url}/nothing"], tmp_path / "after")
    assert (tmp_path / "after-0.prom").read_text() == (tmp_path / "after-1.prom").read_text()


def test_series_of_several_replicas_add_up() -> None:
    counters = parse('# TYPE x_total counter\nx_total{a="1"} 2\nx_total{a="2"} 3\n')
    assert counters.total("x_total") == 5
    assert counters.total("y_total") is None


def test_an_endpoint_that_is_not_there_is_one_line(service: StandIn) -> None:
    with pytest.raises(BenchmarkError, match=r"answered HTTP 404; is it a Prometheus endpoint"):
        scrape([f"{service.url}/nothing"])
    with pytest.raises(BenchmarkError, match="does not speak Prometheus text"):
        scrape([f"{service.url}/v1/models"])
