"""Prompts: as long as planned, shared where planned, new for every seed; and what AIPerf is told to do with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stand_in_data import scenario_data

from benchmarks.errors import BenchmarkError
from benchmarks.load import build_command
from benchmarks.prompt_text import Words, find_words, prompt, write_prompts
from benchmarks.prompts import count_alike
from benchmarks.scenario import Scenario
from benchmarks.target import Target
from benchmarks.workload import Planned, Workload, build_workload

WORDS = Words(words=[f" {first}{second}" for first in "abcdefgh" for second in "abcdefgh"], overhead=0)
LETTERS = Words(words=list("abcdefgh"), overhead=0)
BLOCK = 16


def planned(number: int, isl: int, blocks: list[int], shared: int = 0, at_s: float | None = None) -> Planned:
    return Planned(id=f"p{number}", isl=isl, osl=8, blocks=blocks, shared=shared, at_s=at_s)


def test_a_prompt_is_as_many_words_as_planned() -> None:
    assert len(prompt(planned(0, 40, [1, 2, 3]), BLOCK, WORDS, 1).split()) == 40
    assert len(prompt(planned(0, 40, [1, 2, 3]), BLOCK, LETTERS, 1)) == 40


def test_tokens_that_the_server_adds_are_part_of_the_length() -> None:
    begins = Words(words=WORDS.words, overhead=1)
    assert len(prompt(planned(0, 40, [1, 2, 3]), BLOCK, begins, 1).split()) == 39
    with pytest.raises(BenchmarkError, match="no room for text"):
        prompt(planned(0, 1, [1]), BLOCK, begins, 1)


def test_equal_blocks_are_equal_text_and_others_are_not() -> None:
    one = prompt(planned(0, 40, [1, 2, 3]), BLOCK, WORDS, 1).split()
    other = prompt(planned(1, 48, [1, 2, 4]), BLOCK, WORDS, 1).split()
    assert one[:32] == other[:32]
    assert one[32:] != other[32:40]
    longer = prompt(planned(2, 64, [1, 2, 3, 5]), BLOCK, WORDS, 1).split()
    assert longer[:40] == one


def test_another_seed_shares_nothing() -> None:
    one, other = (prompt(planned(0, 160, list(range(10))), BLOCK, WORDS, seed) for seed in (1, 2))
    heads = [{tuple(text.split()[at : at + BLOCK]) for at in range(0, 160, BLOCK)} for text in (one, other)]
    assert not heads[0] & heads[1]


def test_the_file_that_aiperf_reads(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    requests = [planned(0, 20, [1, 2]), planned(1, 20, [1, 3], at_s=0.25)]
    write_prompts(file, Workload(block_size=BLOCK, unsettled=0, requests=requests), WORDS, 1)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line["session_id"] for line in lines] == ["p0", "p1"]
    assert [line["output_length"] for line in lines] == [8, 8]
    assert [line.get("timestamp") for line in lines] == [None, 250.0]
    assert lines[1]["text_input"] == prompt(requests[1], BLOCK, WORDS, 1)


@pytest.mark.parametrize("words", [WORDS, LETTERS])
def test_prompts_that_go_on_alike_are_counted(tmp_path: Path, words: Words) -> None:
    requests = [planned(0, 48, [1, 2, 3]), planned(1, 48, [1, 4, 5], 16), planned(2, 60, [1, 4, 5, 6], 48)]
    workload = Workload(block_size=BLOCK, unsettled=1, requests=requests)
    file = tmp_path / "prompts.jsonl"
    write_prompts(file, workload, words, 1)
    assert count_alike(file, workload) == 0
    # A third of which less is shared by the plan goes on as the second one does.
    hidden = Workload(block_size=BLOCK, unsettled=1, requests=[*requests[:2], planned(2, 60, [1, 4, 5, 6], 16)])
    assert count_alike(file, hidden) == 2


def test_prompts_of_something_else_are_one_line(tmp_path: Path) -> None:
    workload = Workload(block_size=BLOCK, unsettled=0, requests=[planned(0, 20, [1, 2])])
    file = tmp_path / "prompts.jsonl"
    write_prompts(file, workload, WORDS, 1)
    with pytest.raises(BenchmarkError, match="a prompt that was not planned: p0"):
        count_alike(file, Workload(block_size=BLOCK, unsettled=0, requests=[]))
    with pytest.raises(BenchmarkError, match="cannot read the prompts"):
        count_alike(tmp_path / "missing.jsonl", workload)


def words_of(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_the_aiperf_command(tmp_path: Path, target: Target) -> None:
    scenario = Scenario.model_validate(scenario_data())
    workload = build_workload(scenario, 2.5, 7, 1, BLOCK)
    file = tmp_path / "prompts.jsonl"
    write_prompts(file, workload, WORDS, 1)
    argv = build_command("aiperf", target, scenario, 2.5, 11, tmp_path / "out", file).argv
    assert words_of(argv, "--input-file") == str(file)
    assert words_of(argv, "--custom-dataset-type") == "mooncake_trace"
    assert (words_of(argv, "--request-rate"), words_of(argv, "--arrival-pattern")) == ("2.5", "poisson")
    assert (words_of(argv, "--request-count"), words_of(argv, "--random-seed")) == ("7", "11")
    assert words_of(argv, "--dataset-sampling-strategy") == "sequential"
    assert words_of(argv, "--extra-inputs") == "ignore_eos:true"
    assert {"--no-fixed-schedule", "--use-server-token-count", "--use-legacy-max-tokens"} <= set(argv)


def test_the_aiperf_command_that_replays_a_trace(tmp_path: Path, target: Target) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 20, "output_length": 2}\n', encoding="utf-8")
    scenario = Scenario.model_validate(scenario_data(isl=None, osl=None, trace=str(trace), arrivals="trace"))
    argv = build_command("aiperf", target, scenario, 2.5, 11, tmp_path / "out", trace).argv
    assert "--fixed-schedule" in argv
    assert not {"--request-rate", "--arrival-pattern", "--no-fixed-schedule"} & set(argv)


def test_an_aiperf_without_its_environment_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"there is no Python beside .*/aiperf") as caught:
        find_words(str(tmp_path / "aiperf"), "builtin", tmp_path / "words.json")
    assert "\n" not in str(caught.value)
    kept = tmp_path / "kept.json"
    kept.write_text("{}", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="does not hold the words of a tokenizer; delete it"):
        find_words("aiperf", "builtin", kept)
