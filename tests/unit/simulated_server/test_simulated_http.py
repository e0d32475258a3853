"""The simulated server as an OpenAI client sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import requests
from simulated_client import AGGREGATED, PD, settings, stream

from tools.simulated_server.model import Speed
from tools.simulated_server.running import Running, simulated


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with simulated(settings()) as running:
        yield running


def test_the_model_is_listed(service: Running) -> None:
    models = requests.get(f"{service.url}/v1/models", timeout=5).json()["data"]
    assert [model["id"] for model in models] == [service.target.model]


def test_a_stream_has_an_event_for_each_token_then_the_counts_then_done(service: Running) -> None:
    got = stream(service.url, "é" * 32, 8)
    assert got.status == 200
    assert [len(text) for text in got.texts] == [1] * 8
    assert got.reasons == ["length"]
    assert got.usage == {"prompt_tokens": 64, "completion_tokens": 8, "total_tokens": 72}  # a token is a byte
    assert [event["choices"] == [] for event in got.events] == [False] * 8 + [True]
    assert {event["object"] for event in got.events} == {"text_completion"}
    assert got.done


def test_counts_come_only_when_they_are_asked_for(service: Running) -> None:
    got = stream(service.url, stream_options=None)
    assert (got.usage, len(got.texts), got.done) == (None, 8, True)


def test_the_same_prompt_gets_the_same_answer_whole_or_streamed(service: Running) -> None:
    body = {"prompt": "once upon a time", "max_tokens": 30}
    whole = requests.post(f"{service.url}/v1/completions", json=body, timeout=5).json()
    streamed = stream(service.url, "once upon a time", 30)
    assert whole["choices"][0]["text"] == "".join(streamed.texts)
    assert whole["usage"] == streamed.usage
    assert "".join(stream(service.url, "another", 30).texts) != whole["choices"][0]["text"]


def test_a_prompt_may_be_token_ids(service: Running) -> None:
    assert (stream(service.url, prompt=[1, 2, 3]).usage or {})["prompt_tokens"] == 3  # pyright: ignore[reportArgumentType]


def test_chat_answers_streamed_and_whole(service: Running) -> None:
    url, messages = f"{service.url}/v1/chat/completions", [{"role": "user", "content": "hello"}]
    whole = requests.post(url, json={"messages": messages, "max_tokens": 5}, timeout=5).json()
    assert whole["object"] == "chat.completion"
    assert len(whole["choices"][0]["message"]["content"]) == 5
    body = {"messages": messages, "max_tokens": 5, "stream": True, "stream_options": {"include_usage": True}}
    lines = [line for line in requests.post(url, json=body, timeout=5).text.splitlines() if line]
    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    text = "".join(choice["delta"]["content"] for event in events for choice in event["choices"])
    assert text == whole["choices"][0]["message"]["content"]
    assert events[-1]["usage"] == whole["usage"]
    assert lines[-1] == "data: [DONE]"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"prompt": "x", "model": "another"}, 404),
        ({"prompt": ""}, 400),
        ({"max_tokens": 3}, 400),
        ({"prompt": "x", "max_tokens": -1}, 400),
        ([], 400),
    ],
)
def test_what_a_real_server_refuses_is_refused(service: Running, body: Any, status: int) -> None:
    answer = requests.post(f"{service.url}/v1/completions", json=body, timeout=5)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_latencies_are_the_models_and_divided_by_the_time_scale() -> None:
    """At least what the model says; how much more is up to the machine."""
    slow = replace(AGGREGATED, speed=Speed(base=0.2, per_sequence=0.0, per_prompt_token=0.0))
    with simulated(replace(settings(slow), time_scale=4)) as running:
        got = stream(running.url, tokens=5)
    assert got.times[0] >= 0.049
    assert got.times[-1] >= 0.249
    assert got.times[-1] - got.times[0] < 0.7  # four steps of 0.2 s without the scale would take 0.8 s


def test_tokens_do_not_come_later_and_later() -> None:
    """The lateness of timers does not add up: 300 steps of 1 ms, each timer of which may be 1 ms late."""
    with simulated(settings()) as running:
        stream(running.url, tokens=300)
        [served] = running.server.served
    assert served.output_tokens == 300
    assert (served.last_ns - served.first_ns) / 1e9 == pytest.approx(0.299, abs=0.15)


def test_the_server_keeps_what_it_knows_of_each_request() -> None:
    with simulated(settings(PD)) as running:
        stream(running.url, "x" * 50, 6)
        text = requests.get(f"{running.url}/simulated/requests", timeout=5).text
    [served] = [json.loads(line) for line in text.splitlines()]
    assert (served["prompt_tokens"], served["output_tokens"]) == (50, 6)
    assert served["arrived_ns"] < served["first_ns"] < served["last_ns"]


def test_requests_are_served_side_by_side() -> None:
    with simulated(settings()) as running, ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda n: stream(running.url, f"{n}" * 20, 50), range(8)))
        replica = running.server.deployment.replicas[0]
    assert [len(answer.texts) for answer in got] == [50] * 8
    assert replica.counted.requests == 8
    assert replica.load == 0


def test_a_client_that_leaves_frees_the_engine() -> None:
    with simulated(settings()) as running:
        body = {"prompt": "x", "max_tokens": 5000}
        with pytest.raises(requests.exceptions.ReadTimeout):
            requests.post(f"{running.url}/v1/completions", json=body, timeout=0.1)
        stream(running.url)
        replica = running.server.deployment.replicas[0]
        assert replica.load == 0
