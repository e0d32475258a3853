"""Everything that the server does wrong on demand, as a client sees it. (KV: test_simulated_metrics.)"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from simulated_client import AGGREGATED, Got, settings, stream

from benchmarks.errors import BenchmarkError
from benchmarks.metrics import scrape_target
from benchmarks.prompt_tokens import LOCAL_HITS
from tools.simulated_server.misbehaviour import Misbehaviour, Planner, parse
from tools.simulated_server.model import Speed
from tools.simulated_server.running import simulated

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "simulated-server.md"


def one(tokens: int = 8, timeout: float = 10, **misbehaviour: Any) -> Got:
    """What the first streamed request of a misbehaving server gets."""
    with simulated(settings(**misbehaviour)) as running:
        return stream(running.url, tokens=tokens, timeout=timeout)


def test_by_default_nothing_goes_wrong() -> None:
    got = one()
    assert (got.error, len(got.texts), got.done, bool(got.usage)) == (None, 8, True, True)


def test_an_error_inside_a_stream_that_began_well() -> None:
    got = one(error_in_stream=1)
    assert got.status == 200
    assert got.error == "simulated: the engine died"
    assert (len(got.texts), got.usage, got.reasons) == (4, None, [])


def test_an_answer_without_a_token() -> None:
    got = one(empty=1)
    assert (got.status, got.texts, got.done) == (200, [], True)
    assert (got.usage or {})["completion_tokens"] == 0


def test_a_prompt_that_is_cut() -> None:
    assert (one(cut_prompt=1).usage or {})["prompt_tokens"] == 32


def test_an_answer_without_counts() -> None:
    got = one(without_usage=1)
    assert (len(got.texts), got.usage, got.done) == (8, None, True)


def test_fewer_tokens_than_asked_for() -> None:
    got = one(short=1)
    assert len(got.texts) == (got.usage or {})["completion_tokens"] == 4
    assert got.done


def test_a_refusal() -> None:
    assert (one(http_500=1).status, one(http_500=1).error) == (500, "simulated: the engine is dead")


def test_an_answer_that_never_ends() -> None:
    with simulated(settings(stall=1)) as running:
        with pytest.raises(requests.exceptions.ConnectionError, match="timed out"):
            stream(running.url, timeout=0.5)
        assert running.server.served[0].output_tokens == 4


def test_answers_in_one_piece_are_left_alone() -> None:
    wrong = settings(http_500=1, empty=1, stall=1, die_at_request=1)
    with simulated(wrong) as running:
        answer = requests.post(f"{running.url}/v1/completions", json={"prompt": "x", "max_tokens": 4}, timeout=5)
    assert answer.json()["usage"]["completion_tokens"] == 4


def test_tokens_in_bursts() -> None:
    """Four tokens at a time: the gaps between bursts are those of four steps, and within a burst there is none."""
    slow = replace(AGGREGATED, speed=Speed(base=0.03, per_sequence=0.0, per_prompt_token=0.0))
    with simulated(settings(slow, burst=4)) as running:
        got = stream(running.url, tokens=10)
    gaps = [later - earlier for earlier, later in zip(got.times, got.times[1:], strict=False)]
    large = [index for index, gap in enumerate(gaps) if gap > 0.015]
    assert large == [3, 7]  # after the fourth and the eighth token
    assert (len(got.texts), got.done) == (10, True)


def test_delivery_that_is_slower_than_the_engine() -> None:
    """Three answers at once, 100 tokens a second: E2E grows, and the engine is idle while tokens are on their way."""
    with simulated(settings(delivery_tokens_per_s=100)) as running, ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(stream, running.url, f"{n}" * 20, 20) for n in range(3)]
        engine = running.server.deployment.replicas[0].counted
        while engine.requests < 3:
            time.sleep(0.001)
        still = sum(not answer.done() for answer in answers)
        got = [answer.result() for answer in answers]
    assert still >= 2
    assert max(answer.times[-1] for answer in got) == pytest.approx(0.6, abs=0.2)
    assert [len(answer.texts) for answer in got] == [20] * 3


def test_steps_that_become_slower_and_slower() -> None:
    with simulated(settings(slowdown_per_s=20)) as running:
        got = stream(running.url, tokens=100)
    gaps = [later - earlier for earlier, later in zip(got.times, got.times[1:], strict=False)]
    assert sum(gaps[-20:]) > 3 * sum(gaps[:20])


@pytest.mark.parametrize(("kind", "expected"), [({"warm_cache": 0.75}, 48), ({"cold_cache": 0.5}, 16), ({}, 0)])
def test_a_cache_that_is_warmer_or_colder_than_the_prompts(kind: dict[str, Any], expected: int) -> None:
    """Of 64 tokens none was ever seen; or, when colder, the same prompt was (3 blocks, 1 of them used)."""
    with simulated(settings(**kind)) as running:
        if "cold_cache" in kind:
            stream(running.url)
        before = scrape_target(running.target)
        stream(running.url)
        assert (scrape_target(running.target).since(before).total(LOCAL_HITS) or 0) == expected


def test_somebody_elses_requests_count_and_are_not_answered_to_us() -> None:
    with simulated(settings(foreign=1)) as running:
        got = [stream(running.url) for _ in range(4)]
        stream(running.url, tokens=50)  # the last foreign one but one has ended by then
        counted = running.server.deployment.replicas[0].counted.requests
    assert all(len(answer.texts) == 8 for answer in got)
    assert counted >= 9


def test_requests_of_a_replica_that_restarts_are_lost() -> None:
    with simulated(settings(restart_at_request=2)) as running, ThreadPoolExecutor(1) as pool:
        first = pool.submit(stream, running.url, "a" * 20, 2000)
        while running.server.deployment.replicas[0].load == 0:
            time.sleep(0.001)
        second = stream(running.url, tokens=4)
        assert first.result().error == "simulated: the replica died"
    assert (second.error, len(second.texts)) == (None, 4)


def test_a_share_picks_the_same_requests_under_the_same_seed() -> None:
    def picked(seed: int) -> list[int]:
        planner = Planner(Misbehaviour(http_500=0.2, empty=0.2), seed)
        plans = [planner.plan(8) for _ in range(500)]
        return [2 * plan.refused + (plan.tokens == 0) for plan in plans]

    assert picked(1) == picked(1) != picked(2)
    counts = Counter(picked(1))
    assert counts[2] + counts[3] == pytest.approx(100, abs=25)
    assert counts[1] + counts[3] == pytest.approx(100, abs=25)
    assert counts[3] == pytest.approx(20, abs=15)  # kinds pick independently


def test_kinds_are_given_as_key_and_value() -> None:
    assert parse(["short=0.5", "kv_over_tcp=true"]) == Misbehaviour(short=0.5, kv_over_tcp=True)


@pytest.mark.parametrize("wrong", ["shrt=0.5", "short", "short=2", "die_at_request=soon"])
def test_a_wrong_one_is_one_line(wrong: str) -> None:
    with pytest.raises(BenchmarkError, match=r"--misbehave") as caught:
        parse([wrong])
    assert "\n" not in str(caught.value)


def test_every_kind_is_documented() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.split("|")] for line in rows]
    table = {cell[1].strip("`"): cell[2] for cell in cells}
    for name, field in Misbehaviour.model_fields.items():
        assert table.get(name) == field.description
