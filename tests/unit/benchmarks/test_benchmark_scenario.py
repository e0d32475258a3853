"""Scenarios are data: all that ship load, a user's own loads, and a bad one names the key at fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from stand_in_data import scenario_data

from benchmarks.errors import BenchmarkError
from benchmarks.scenario import Scenario, find_scenario, load_scenarios, seed_for
from benchmarks.summary import samples_needed


def test_every_shipped_scenario_can_answer_its_own_slo() -> None:
    quantile = {"mean": 0.5, "p50": 0.5, "p90": 0.9, "p99": 0.99}
    scenarios = load_scenarios()
    assert len(scenarios) >= 7
    for scenario in scenarios.values():
        for slo in scenario.slo:
            assert scenario.min_requests >= samples_needed(quantile[slo.statistic]), scenario.name
        at_tpot_bound = [scenario.osl * slo.bound_ms / 1000 for slo in scenario.slo if slo.metric == "tpot"]
        if scenario.name != "rehearsal":
            assert scenario.warmup_s >= max(at_tpot_bound), scenario.name


def test_the_rehearsal_leaves_time_for_everything_else_in_three_minutes() -> None:
    rehearsal = find_scenario("rehearsal")
    assert sum(rehearsal.seconds(rate) for rate in rehearsal.rates) <= 100


def test_a_user_adds_one_without_code(tmp_path: Path) -> None:
    body = scenario_data()
    name = body.pop("name")
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({name: body}), encoding="utf-8")
    assert find_scenario(name, file).isl == 64


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prefix_hit_rate": 1.0}, "prefix_hit_rate"),
        ({"turns": 3}, "only single-turn"),
        ({"rates": [0]}, "different numbers greater than 0"),
        ({"slo": []}, "slo"),
        ({"slo": [{"metric": "ttft", "statistic": "p95", "bound": 1, "unit": "s"}]}, "slo.0.statistic"),
        ({"arrivals": "constant"}, "arrivals"),
        ({"speed": 3}, "speed: Extra inputs"),
    ],
)
def test_a_bad_one_names_the_key(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    body = scenario_data(**change)
    file = tmp_path / "bad.yaml"
    file.write_text(yaml.safe_dump({body.pop("name"): body}), encoding="utf-8")
    with pytest.raises(BenchmarkError) as caught:
        load_scenarios(file)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


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
