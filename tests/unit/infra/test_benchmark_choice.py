"""What a Job's command line says of a scenario that is chosen here."""

from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.scenario_files import find_scenario, parse_scenario
from infra.benchmark_job.measure import Choice

MINE = """
mine:
  description: of my own
  isl: {lognormal: {mean: 900, sigma: 0.5, lowest: 100, highest: 2000}}
  osl: 20
  slo: [{metric: ttft, statistic: p90, bound: 1, unit: s}]
  rates: [1, 2]
  warmup_s: 5
  window_s: 50
  min_requests: 30
  request_timeout_s: 60
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE, encoding="utf-8")
    return file


def test_a_shipped_scenario_goes_by_its_name() -> None:
    choice = Choice("qwen-8k-1k", "0.5,1", resume=True)
    words = ["--scenario", "qwen-8k-1k", "--rates", "0.5,1", "--resume"]
    assert choice.options == choice.options_elsewhere(choice.find("rehearsal")) == words
    assert Choice().options_elsewhere(Choice().find("rehearsal")) == []


def test_one_of_a_file_goes_as_a_whole(file: Path) -> None:
    choice = Choice("mine", "3", scenarios_file=file)
    chosen = choice.find("rehearsal")
    [option, text, *rest] = choice.options_elsewhere(chosen)
    assert option == "--scenario-json"
    assert parse_scenario(text) == chosen
    assert rest == ["--rates", "3"]
    assert parse_scenario(text).at("3") == find_scenario("mine", file).at("3")
    assert choice.options == ["--scenarios", str(file), "--scenario", "mine", "--rates", "3"]


def test_one_that_needs_a_file_of_this_machine_is_refused(file: Path) -> None:
    trace = file.with_name("trace.csv")
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,8,2\n", encoding="utf-8")
    lines = [line for line in MINE.splitlines() if "isl" not in line and "osl" not in line]
    file.write_text("\n".join([*lines, "  trace: trace.csv"]), encoding="utf-8")
    choice = Choice("mine", scenarios_file=file)
    with pytest.raises(
        BenchmarkError, match=f"reads the trace {trace}, which a Job in the cluster does not see"
    ) as caught:
        choice.options_elsewhere(choice.find("rehearsal"))
    assert "\n" not in str(caught.value)
    assert choice.options == ["--scenarios", str(file), "--scenario", "mine"]
