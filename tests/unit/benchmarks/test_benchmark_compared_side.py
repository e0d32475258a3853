"""What one side of a comparison says of all its runs, and which runs are alike enough to be one side."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from stand_in_data import aggregated, request, scenario_data, target_data

from benchmarks.compared_side import ComparedSide, _same
from benchmarks.highest_rate import HighestRate
from benchmarks.measured import Measured
from benchmarks.prices import find_price
from benchmarks.ratio import Ratio
from benchmarks.run_directory import RunDirectory, RunInfo
from benchmarks.scenario import Scenario
from benchmarks.slo_comparison import SloComparison
from benchmarks.target import Target
from benchmarks.validity import Pair, check_comparison
from benchmarks.worth import worth

URL = "http://127.0.0.1:9"
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def run(asked: dict[str, Any] | None = None, aiperf: str = "0.13", hours: float = 0, **target: Any) -> RunDirectory:
    """A run of which nothing lies on disk."""
    started = STARTED + timedelta(hours=hours)
    info = RunInfo(run_id="1", started=started, argv=[], tools={"aiperf": aiperf}, image={"vllm": ["0.18"]})
    scenario = Scenario.model_validate(scenario_data(**(asked or {})))
    return RunDirectory(Path("nowhere"), info, Target.model_validate(target_data(URL, **target)), scenario)


def test_output_tokens_are_those_of_complete_answers() -> None:
    window = [request(0), request(1, output_tokens=3), request(2, error="x"), request(3, output_tokens=None)]
    assert ComparedSide("a", [run()], [Measured(1.0, window, 4)]).output_tokens == 8
    assert ComparedSide("a", [run()], [Measured(1.0, window[1:], 3)]).output_tokens == 0


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (run({"rates": [1, 2]}), True),
        (run({"seed": 3}), True),
        (run(metrics_urls=["http://127.0.0.1:8"], commit="c0ffee"), True),
        (run({"slo": [{"metric": "e2e", "statistic": "p90", "bound": 2, "unit": "s"}]}), False),
        (run({"also": {"post": [{"metric": "e2e", "statistic": "p90", "bound": 2, "unit": "s"}]}}), False),
        (run({"osl": 9}), False),
        (run(versions={"vllm": "0.19"}), False),
    ],
)
def test_runs_of_one_side_differ_in_place_and_rates_only(other: RunDirectory, same: bool) -> None:
    assert _same(other, run()) is same


def test_a_side_is_all_its_runs_to_a_check() -> None:
    """An earlier run that another AIPerf made is found, though the latest runs of both sides are alike."""
    first = ComparedSide("a", [run(aiperf="0.12"), run(hours=1)], [])
    second = ComparedSide("b", [run(hours=30), run(hours=31)], [])
    found = {f.id: f for f in check_comparison(Pair(first.seen, second.seen)) if f.outcome != "ok"}
    assert "aiperf 0.12 and 0.13 against 0.13" in found["unequal-client"].sentence
    assert found["unequal-client"].outcome == "fault"
    assert found["runs-apart"].sentence.startswith("29.0 hours lie between")


def test_equal_mixtures_are_no_one_client() -> None:
    sides = [ComparedSide(name, [run(aiperf="0.12"), run()], []).seen for name in "ab"]
    found = {f.id: f.outcome for f in check_comparison(Pair(*sides))}
    assert found["unequal-client"] == "fault"


@pytest.mark.parametrize(
    ("kind", "outcome", "changes"),
    [
        ("unequal-weights", "fault", {"deployment": target_data(URL)["deployment"] | {"dummy_weights": False}}),
        ("unequal-image", "fault", {"versions": {}}),
        ("unequal-client", "note", {"tokenizer": "another"}),
        ("unknown-arguments", "fault", {"deployment": target_data(URL)["deployment"] | {"engine": {}}}),
    ],
)
def test_what_one_side_alone_has_or_tells_is_found(kind: str, outcome: str, changes: dict[str, Any]) -> None:
    sides = [ComparedSide(name, [one], []).seen for name, one in (("a", run()), ("b", run(**changes)))]
    for pair in (Pair(*sides), Pair(*reversed(sides))):
        assert {f.id: f.outcome for f in check_comparison(pair)}[kind] == outcome


def gpu_side(name: str, tokens: int, gpus: int) -> ComparedSide:
    data = aggregated(URL)
    data["deployment"] |= {"gpus": gpus, "platform": "rocm"}
    answers = [request(n, output_tokens=tokens, asked=8) for n in range(3)]
    return ComparedSide(name, [run(deployment=data["deployment"], kv=None)], [Measured(1.0, answers, 3)])


def compared() -> SloComparison:
    base, candidate = (
        HighestRate(confidence=0.9, rate=rate, passes=0.8 * rate, fails=1.6 * rate) for rate in (2.0, 4.0)
    )
    ratio = Ratio(verdict="more", estimate=2, low=1.5, high=3)
    return SloComparison(name="slo", bounds=[], base=base, candidate=candidate, ratio=ratio, sentence="")


def test_worth_is_the_candidates_saving_at_what_it_serves() -> None:
    """12 GPUs are two nodes. 4 req/s take two sets of the base and one of the candidate."""
    found = worth(compared(), gpu_side("a", 8, 12), gpu_side("b", 8, 12), find_price("3.60"), None)
    assert found is not None
    assert found.load == 4
    assert (found.base_nodes.exact, found.candidate_nodes.exact) == (4, 2)
    assert found.saving.exact == 0.5
    # 12 GPUs at 3.60 are 43.20 an hour, in which 2 req/s are 57,600 tokens: 750 a million, and at 3.2 req/s 468.75.
    cost = found.base_cost
    assert cost is not None
    assert (cost.value, cost.lowest, cost.highest) == pytest.approx((750, 468.75, 937.5))


def test_nothing_is_worth_anything_without_a_complete_answer() -> None:
    assert worth(compared(), gpu_side("a", 8, 12), gpu_side("b", 0, 12), None, None) is None
