"""What a scenario sends: hit rates by construction, conversations, traces, held against a block prefix cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_in_data import scenario_data

from benchmarks.errors import BenchmarkError
from benchmarks.prefix_hits import expected_hit_rate
from benchmarks.prompt_text import Words, prompt
from benchmarks.scenario import Scenario
from benchmarks.scenario_files import find_scenario
from benchmarks.workload import Planned, Workload, build_workload, read_workload

WORDS = Words(words=[f" w{number}" for number in range(1000)], overhead=0)
BLOCK = 128


def scenario(**changes: Any) -> Scenario:
    return Scenario.model_validate(scenario_data(isl=8192, osl=1024, warmup_s=60, **changes))


class PrefixCache:
    """vLLM's: whole blocks, each known by its tokens and the one before it; a prompt's last token is computed."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._known: dict[tuple[int, tuple[str, ...]], int] = {}

    def hits(self, tokens: list[str]) -> int:
        before, found, going_on = 0, 0, True
        for start in range(0, len(tokens) - self._block + 1, self._block):
            key = (before, tuple(tokens[start : start + self._block]))
            going_on = going_on and key in self._known and start + self._block < len(tokens)
            found += self._block if going_on else 0
            before = self._known.setdefault(key, len(self._known) + 1)
        return found


def served(workload: Workload, block: int, seed: int = 1) -> list[tuple[Planned, int]]:
    """Each request with the tokens of its text that the cache had."""
    cache = PrefixCache(block)
    return [(one, cache.hits(prompt(one, workload.block_size, WORDS, seed).split())) for one in workload.requests]


def rate_of(found: list[tuple[Planned, int]]) -> float:
    return sum(hits for _, hits in found) / sum(one.isl for one, _ in found)


def test_without_a_hit_rate_nothing_is_shared() -> None:
    workload = build_workload(scenario(), 1.0, 40, 1, BLOCK)
    assert rate_of(served(workload, 16)) == 0
    assert {(one.isl, one.osl, len(one.blocks)) for one in workload.requests} == {(8192, 1024, 64)}
    assert (workload.unsettled, workload.hit_rate(BLOCK)) == (0, 0)


@pytest.mark.parametrize(("share", "block"), [(0.3, 16), (0.3, 128), (0.6, 128), (0.6, 256), (0.95, 128)])
def test_a_shared_prefix_gives_exactly_its_hit_rate(share: float, block: int) -> None:
    workload = build_workload(scenario(prefix_hit_rate=share), 1.0, 40, 1, block)
    found = served(workload, block)
    settled = found[10:]
    assert rate_of(settled) == pytest.approx(share, abs=block / 8192 / 10)
    # What the plan says of each request is what the cache does.
    assert workload.hit_rate(block) == pytest.approx(rate_of(found))
    assert workload.unsettled == 1


def test_a_shared_prefix_of_prompts_of_all_lengths() -> None:
    spread = {"lognormal": {"mean": 4000, "sigma": 0.8, "lowest": 200, "highest": 16000}}
    chosen = Scenario.model_validate(scenario_data(isl=spread, osl=8, prefix_hit_rate=0.5))
    found = served(build_workload(chosen, 1.0, 300, 1, BLOCK), BLOCK)
    assert rate_of(found[50:]) == pytest.approx(0.5, abs=0.02)


def test_prompts_too_short_for_their_hit_rate_are_refused() -> None:
    short = Scenario.model_validate(scenario_data(isl=100, prefix_hit_rate=0.5))
    with pytest.raises(BenchmarkError, match=r"cannot have 50% of their tokens in whole blocks of 128") as caught:
        build_workload(short, 1.0, 30, 1, BLOCK)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("block", [64, 128])
def test_conversations_repeat_exactly_their_share(block: int) -> None:
    chat = find_scenario("qwen-8k-1k-chat")
    workload = build_workload(chat, 0.2, 18 + 8 * 18, 1, block)
    assert workload.unsettled == 18  # three times the 28.6 s that an answer may take, at one request in five seconds
    found = served(workload, block)
    assert rate_of(found[: workload.unsettled]) == 0
    settled = found[workload.unsettled :]
    assert rate_of(settled) == pytest.approx(0.8, abs=0.005)
    assert workload.hit_rate(block, workload.unsettled) == pytest.approx(rate_of(settled))
    assert np.mean([one.isl for one, _ in settled]) == pytest.approx(8192, rel=0.01)
    # Each prompt is the one before it and more: its own text starts within a block of where that ended.
    for one, hits in settled:
        assert (hits > 0) is (one.turn > 1)


def test_a_turn_comes_long_after_the_answer_to_the_one_before() -> None:
    chat = find_scenario("qwen-8k-1k-chat")
    rate, longest_s = 2.0, 3 + 1024 * 0.025
    workload = build_workload(chat, rate, 1600, 1, BLOCK)
    last: dict[int | None, tuple[int, Planned]] = {}
    for position, one in enumerate(workload.requests):
        if one.conversation in last:
            before, earlier = last[one.conversation]
            assert position - before >= rate * 3 * longest_s
            assert (one.turn, one.isl > earlier.isl + earlier.osl) == (earlier.turn + 1, True)
        last[one.conversation] = (position, one)
    # Every turn is as frequent as any other, from the beginning on: the load does not grow while it is measured.
    for start in (0, 800):
        turns = [one.turn for one in workload.requests[start : start + 172]]
        assert all(turns.count(turn) == pytest.approx(172 / 8, abs=2) for turn in range(1, 9))


def test_turns_stay_apart_at_the_lowest_rates() -> None:
    workload = build_workload(find_scenario("qwen-8k-1k-chat"), 0.01, 100, 1, BLOCK)
    places = [number for number, one in enumerate(workload.requests) if one.conversation == 0]
    assert set(np.diff(places)) == {8}


def test_more_caches_find_less_of_conversations_and_as_much_of_a_shared_prefix() -> None:
    chat = build_workload(find_scenario("qwen-8k-1k-chat"), 0.5, 800, 1, BLOCK)
    one, three = (expected_hit_rate(chat, BLOCK, caches) for caches in (1, 3))
    assert one == pytest.approx(chat.hit_rate(BLOCK))
    assert three == pytest.approx(0.57 * one, abs=0.08)  # a turn may also meet one before the one before
    shared = build_workload(scenario(prefix_hit_rate=0.6), 1.0, 800, 1, BLOCK)
    assert expected_hit_rate(shared, BLOCK, 3) == pytest.approx(0.6, abs=0.01)


def test_the_same_seed_plans_the_same_and_another_one_other_lengths_and_texts() -> None:
    spread = {"lognormal": {"mean": 400, "sigma": 0.5, "lowest": 100, "highest": 900}}
    chosen = Scenario.model_validate(scenario_data(isl=spread, osl=spread, prefix_hit_rate=0.3))
    plans = [build_workload(chosen, 1.0, 30, seed, 16) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    texts = [prompt(one, 16, WORDS, seed) for seed in (1, 2) for one in plans[0].requests]
    assert len({" ".join(text.split()[:16]) for text in texts}) >= 2
    assert not {tuple(text.split()[:16]) for text in texts[:30]} & {tuple(text.split()[:16]) for text in texts[30:]}


def traced(tmp_path: Path, *lines: dict[str, Any], **changes: Any) -> Scenario:
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return Scenario.model_validate(scenario_data(isl=None, osl=None, trace=str(file), **changes))


LINES = (
    {"timestamp": 0, "input_length": 1500, "output_length": 10, "hash_ids": [7, 8, 9]},
    {"timestamp": 1000, "input_length": 1536, "output_length": 20, "hash_ids": [7, 8, 10]},
    {"timestamp": 5000, "input_length": 600, "output_length": 30, "hash_ids": [7]},
)


def test_a_trace_gives_lengths_and_what_its_prompts_share(tmp_path: Path) -> None:
    workload = build_workload(traced(tmp_path, *LINES), 2.0, 6, 1, BLOCK)
    assert [(one.isl, one.osl) for one in workload.requests] == [(1500, 10), (1536, 20), (600, 30)] * 2
    # The second time around is another content: it must not be answered from the cache of the first.
    assert [one.shared for one in workload.requests] == [0, 1024, 512] * 2
    assert [hits for _, hits in served(workload, BLOCK)] == [0, 1024, 512] * 2
    assert {one.at_s for one in workload.requests} == {None}


def test_the_spacing_of_a_trace_is_replayed_at_the_offered_rate(tmp_path: Path) -> None:
    workload = build_workload(traced(tmp_path, *LINES, arrivals="trace"), 4.0, 6, 1, BLOCK)
    due = [one.at_s for one in workload.requests]
    # Three in 5 s are 0.4 a second: ten times as fast. The pause between two rounds is a mean gap.
    assert due == pytest.approx([0, 0.1, 0.5, 0.75, 0.85, 1.25])
    still = traced(tmp_path, LINES[0], LINES[0], arrivals="trace")
    with pytest.raises(BenchmarkError, match="no spacing to replay"):
        build_workload(still, 1.0, 3, 1, BLOCK)


def test_a_trace_without_hash_ids_can_be_given_a_shared_prefix(tmp_path: Path) -> None:
    file = tmp_path / "azure.csv"
    rows = [f"2023-11-16 18:17:{second:02},{1000 + 100 * second},{second + 2}" for second in range(30)]
    file.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]), encoding="utf-8")
    chosen = Scenario.model_validate(scenario_data(isl=None, osl=None, trace=str(file), prefix_hit_rate=0.5))
    workload = build_workload(chosen, 1.0, 30, 1, BLOCK)
    assert [one.isl for one in workload.requests] == [1000 + 100 * number for number in range(30)]
    assert rate_of(served(workload, BLOCK)[5:]) == pytest.approx(0.5, abs=0.05)


def test_a_plan_is_read_again(tmp_path: Path) -> None:
    workload = build_workload(scenario(prefix_hit_rate=0.3), 1.0, 5, 1, BLOCK)
    file = tmp_path / "workload.json"
    file.write_text(workload.model_dump_json(), encoding="utf-8")
    assert read_workload(file) == workload
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="is damaged or of another version"):
        read_workload(file)
