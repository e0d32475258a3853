"""A cold service is woken before it is measured."""

from __future__ import annotations

import pytest
from stand_in_server import StandIn

from benchmarks.errors import BenchmarkError
from benchmarks.priming import prime
from benchmarks.scenario import Scenario
from benchmarks.target import Target


def test_it_goes_on_until_answers_take_alike(service: StandIn, target: Target, scenario: Scenario) -> None:
    service.behaviour.waking_s = (0.6, 0.3, *(0.1,) * 40)
    said: list[str] = []
    priming = prime(target, scenario, said.append)
    assert priming.awake
    assert len(priming.seconds) >= 5  # two slow ones and three alike
    assert priming.seconds[0] > 0.6
    assert said[0] == "waking the service: request 1 of at least 3"
    assert service.prompts == []


def test_more_replicas_need_more_requests(service: StandIn, target: Target, scenario: Scenario) -> None:
    layout = target.deployment.model_copy(update={"prefill": 2, "decode": 2})
    wide = target.model_copy(update={"deployment": layout})
    assert len(prime(wide, scenario, lambda _: None).seconds) >= 8


def test_a_service_that_never_settles_is_not_called_awake(
    service: StandIn, target: Target, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.priming.MOST", 6)
    service.behaviour.waking_s = (0.2, 0.001) * 20
    priming = prime(target, scenario, lambda _: None)
    assert (priming.awake, len(priming.seconds)) == (False, 6)


def test_a_service_that_refuses_is_one_line(service: StandIn, target: Target, scenario: Scenario) -> None:
    service.behaviour.refuse = True
    with pytest.raises(BenchmarkError, match=r"HTTP 500: .*the engine") as caught:
        prime(target, scenario, lambda _: None)
    assert "\n" not in str(caught.value)
