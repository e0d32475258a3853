"""Scenarios are data: all that ship load, a user's own loads, and a bad one names the key at fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from stand_in_data import scenario_data

from benchmarks.errors import BenchmarkError
from benchmarks.scenario import Scenario, seed_for
from benchmarks.scenario_files import find_scenario, load_scenarios, parse_scenario
from benchmarks.summary import samples_needed


def written(tmp_path: Path, **changes: Any) -> Path:
    """A file with the scenario `quick`, changed; a key whose value is None is left out."""
    body = {key: value for key, value in scenario_data(**changes).items() if value is not None}
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({body.pop("name"): body}), encoding="utf-8")
    return file


def test_every_shipped_scenario_can_answer_its_own_slo() -> None:
    quantile = {"mean": 0.5, "p50": 0.5, "p90": 0.9, "p99": 0.99}
    scenarios = load_scenarios()
    assert len(scenarios) >= 8
    for scenario in scenarios.values():
        for slo in [*scenario.slo, *(slo for bounds in scenario.also.values() for slo in bounds)]:
            assert scenario.min_requests >= samples_needed(quantile[slo.statistic]), scenario.name
        longest_answer = scenario.longest[1]
        at_tpot_bound = [longest_answer * slo.bound_ms / 1000 for slo in scenario.slo if slo.metric == "tpot"]
        if scenario.name != "rehearsal":
            assert scenario.warmup_s >= max(at_tpot_bound), scenario.name


def test_what_the_reference_post_measured_is_there() -> None:
    """Its table (facts of generate_blog_charts.py@2b73d93f): lengths, hit rate, bound on mean TPOT, topologies."""
    shipped = load_scenarios().values()
    for isl, osl, hits, bound_ms, pd, aggregated in (
        (16384, 1024, 0, 25, "2p1d", "agg-3"),
        (8192, 1024, 0, 25, "1p2d", "agg-3"),
        (5400, 140, 0.3, 30, "1p1d", "agg-2"),
        (5400, 140, 0.6, 30, "1p1d", "agg-2"),
        (16384, 1024, 0, 25, "2p2d", "agg-4"),
        (8192, 1024, 0.6, 25, "1p2d", "agg-3"),
    ):
        [found] = [one for one in shipped if (one.isl, one.osl, one.prefix_hit_rate, one.turns) == (isl, osl, hits, 1)]
        assert [(slo.metric, slo.statistic, slo.bound_ms) for slo in found.also["post"]] == [("tpot", "mean", bound_ms)]
        assert {("tpot", "p90", bound_ms), ("ttft", "p90", 3000)} == {
            (slo.metric, slo.statistic, slo.bound_ms) for slo in found.slo
        }
        for topology in (pd, aggregated):
            assert any(name.endswith(topology) for name in found.stacks), (found.name, topology)


def test_conversations_that_repeat_four_fifths_ship() -> None:
    assert [one.prefix_hit_rate for one in load_scenarios().values() if one.turns > 1] == [0.8]


def test_the_rehearsal_leaves_time_for_everything_else_in_three_minutes() -> None:
    rehearsal = find_scenario("rehearsal")
    assert sum(rehearsal.most_seconds(rate) for rate in rehearsal.rates) <= 105


def test_a_user_adds_one_without_code(tmp_path: Path) -> None:
    body = scenario_data()
    name = body.pop("name")
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({name: body}), encoding="utf-8")
    assert find_scenario(name, file).isl == 64


def test_one_with_everything_a_user_may_write(tmp_path: Path) -> None:
    spread = {"lognormal": {"mean": 4000, "sigma": 0.6, "lowest": 500, "highest": 12000}}
    file = written(tmp_path, isl=spread, osl=256, rates=None, search={"lowest": 1, "highest": 32}, stacks=["agg-3"])
    scenario = find_scenario("quick", file)
    assert scenario.longest == (12000, 256)
    assert scenario.shape == "~4000 (500-12000)/256"
    assert scenario.at("3,2").rates == [2, 3]
    assert scenario.at("3,2").search is None
    assert parse_scenario(scenario.model_dump_json()) == scenario
    assert parse_scenario(scenario.model_dump_json(exclude_defaults=True)) == scenario


def test_a_trace_lies_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    trace = tmp_path / "traces" / "mine.jsonl"
    lines = [{"timestamp": 0, "input_length": isl, "output_length": 9} for isl in (900, 300, 5000)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    file = written(tmp_path, isl=None, osl=None, trace={"file": "traces/mine.jsonl", "longest": 1000})
    scenario = find_scenario("quick", file)
    assert scenario.trace is not None
    assert scenario.trace.file == str(trace)
    assert scenario.longest == (900, 9)
    assert find_scenario("quick", written(tmp_path, isl=None, osl=None, trace="traces/mine.jsonl")).longest == (5000, 9)


TURNS = {"isl": 8192, "osl": 64, "turns": 8, "prefix_hit_rate": 0.8}
TPOT = [{"metric": "tpot", "statistic": "p90", "bound": 100, "unit": "ms"}]
E2E = [{"metric": "e2e", "statistic": "p90", "bound": 4, "unit": "s"}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prefix_hit_rate": 1.0}, "prefix_hit_rate"),
        (
            {**TURNS, "turns": 5},
            "prefix_hit_rate: conversations of 5 turns repeat between 60% and 80% of their prompts",
        ),
        ({**TURNS, "osl": 2000, "slo": E2E}, "osl: prompts grow by 1404 tokens a turn, which leaves no room"),
        (TURNS, "slo: turns need a bound on TPOT or E2E"),
        ({**TURNS, "slo": TPOT}, "warmup_s: at least 19"),
        ({**TURNS, "isl": None, "osl": None, "trace": "a.csv"}, "turns: a trace has its own conversations"),
        ({"rates": [0]}, "different numbers greater than 0"),
        ({"rates": None}, "give either rates"),
        ({"search": {"lowest": 1, "highest": 2}}, "give either rates"),
        ({"rates": None, "search": {"lowest": 2, "highest": 2}}, "search: lowest must be less than highest"),
        ({"isl": None}, "isl and osl go together"),
        ({"trace": "a.csv"}, "give either isl and osl, or trace"),
        ({"isl": "long"}, "isl: must be a valid integer"),
        ({"isl": {"lognormal": {"mean": 5, "sigma": 1, "lowest": 9, "highest": 99}}}, "mean must lie between"),
        ({"isl": {"normal": {"mean": 5}}}, "isl.lognormal"),
        ({"osl": 1}, "osl: answers of one token"),
        ({"also": {"post": []}}, "each set under also needs a bound"),
        ({"also": {"slo": [{"metric": "tpot", "statistic": "p90", "bound": 25, "unit": "ms"}]}}, "and not slo"),
        ({"also": {"": [{"metric": "tpot", "statistic": "p90", "bound": 25, "unit": "ms"}]}}, "each set needs a name"),
        ({"arrivals": "trace"}, "arrivals: trace replays the spacing of a trace"),
        ({"slo": []}, "slo"),
        ({"slo": [{"metric": "ttft", "statistic": "p95", "bound": 1, "unit": "s"}]}, "slo.0.statistic"),
        ({"arrivals": "constant"}, "arrivals"),
        ({"speed": 3}, "speed: unknown key"),
        ({"oslo": 3}, "scenario quick: oslo: unknown key; did you mean slo, osl"),
        ({"slo": [{"metric": "ttft", "statistic": "p90", "bond": 1, "unit": "s"}]}, "slo.0.bond: unknown key; did you"),
        ({"warmup_s": None}, "mine.yaml, line 1: scenario quick: warmup_s: is missing"),
        ({"warmup_s": float("inf")}, "warmup_s: must be a finite number"),
        ({"window_s": 1e308}, "window_s: must be less than or equal to 604800"),
        ({"request_timeout_s": float("inf")}, "request_timeout_s: must be a finite number"),
        ({"slo": [{"metric": "ttft", "statistic": "p90", "bound": float("inf"), "unit": "s"}]}, "slo.0.bound: must be"),
        ({"isl": 10**12}, "isl: must be less than or equal to 10000000"),
        ({"osl": True}, "osl: must not be true"),
        ({"min_requests": 10**15}, "min_requests: must be less than or equal to 1000000"),
        ({"min_requests": 5000}, "scenario quick: max_requests: at least min_requests, 5000; it is 4000"),
        ({"rates": [1e300]}, "rates must lie between 0.001 and 100000 req/s"),
        ({"rates": [90_000], "window_s": 60}, "window_s: 60 s at 90000 req/s are over 1,000,000 requests"),
        ({"rates": None, "search": {"lowest": 1e-320, "highest": 2}}, "search.lowest: must be greater than"),
        ({"rates": None, "search": {"lowest": 1, "highest": 2, "most_runs": 5}}, "search.most_runs: must be greater"),
        (
            {"isl": {"lognormal": {"mean": 1e300, "sigma": 1, "lowest": 1, "highest": 10**310}}},
            "isl.lognormal.mean: must",
        ),
        ({"isl": None, "osl": None, "trace": "a\0b.csv"}, "trace: has control characters"),
        ({"description": "\ud800"}, "description: has control characters"),
    ],
)
def test_a_bad_one_names_the_key(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(BenchmarkError) as caught:
        load_scenarios(written(tmp_path, **change))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["- a list", "quick: 3", "quick:", "a: [", "\x00"])
def test_a_file_of_something_else_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BenchmarkError) as caught:
        load_scenarios(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: {}\ny: {}\nx: {}\n", "line 3: x stands twice, first on line 1"),
        ("x:\n  isl: 1\n  osl: 2\n  isl: 3\n", "line 4: isl stands twice, first on line 2"),
        ("x:\n  name: other\n", "line 2: scenario x: name: leave it out"),
        ("x:\n  a: 2024-13-45\n", "line 2: '2024-13-45' is no value that can be read"),
        ("x: !!int abc\n", "line 1: 'abc' is no value that can be read"),
        ("x: !!timestamp 1\n", "line 1: '1' is no value that can be read"),
        ("x: {isl: " + "9" * 5000 + "}\n", "is no value that can be read"),
        ("[" * 3000, "nested too deeply"),
    ],
)
def test_what_yaml_makes_of_odd_texts_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BenchmarkError) as caught:
        load_scenarios(file)
    assert str(file) in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", "9" * 5000, "[" * 100_000, '{"isl": 1, "isl": 2}', '{"isl": NaN}'])
def test_json_that_is_no_scenario_is_one_line(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"^--scenario-json: [^\n]*$"):
        parse_scenario(text)


def test_an_unknown_one_lists_what_there_is() -> None:
    with pytest.raises(BenchmarkError, match=r"no scenario called 'nope' .* rehearsal"):
        find_scenario("nope")


def test_seeds_differ_between_runs_and_rates_but_repeat(scenario: Scenario) -> None:
    seeds = {seed_for(scenario, run, rate, 1) for run in ("a", "b", "c") for rate in (1.0, 1.5, 2.0)}
    assert len(seeds) == 9
    assert seed_for(scenario, "a", 1.5, 1) == seed_for(scenario, "a", 1.5, 1) != seed_for(scenario, "a", 1.5, 2)
    fixed = Scenario.model_validate(scenario_data(seed=7))
    assert seed_for(fixed, "a", 1.0, 1) == seed_for(fixed, "b", 1.0, 2)


def test_the_window_grows_at_low_rates(scenario: Scenario) -> None:
    assert scenario.measured_requests(0.5) == 30
    assert scenario.measured_requests(100) == 150
