"""The real AIPerf and the whole benchmark against a service that lies. Clean ones: test_benchmark_cut_off.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import run as runner
from benchmarks.metrics import Settling
from benchmarks.run_directory import RateResult
from benchmarks.scenario import Scenario
from benchmarks.scenario_files import find_scenario
from tools.simulated_server.misbehaviour import Misbehaviour
from tools.simulated_server.model import Arrangement
from tools.simulated_server.running import simulated
from tools.simulated_server.settings import SPEEDS, Settings

QUICK = Settling(quiet_s=1.0, confirm_s=1.0, limit_s=5, poll_s=0.1)
PD = Arrangement(SPEEDS["quick"], decode=1, prefill=1, transfer_latency=0.001, cache_tokens=100_000)


def scenario(**changes: Any) -> Scenario:
    """The rehearsal's, of a few seconds."""
    data = find_scenario("rehearsal").model_dump()
    wanted = {"isl": 200, "osl": 8, "rates": [15], "min_requests": 30, "warmup_s": 0.5, "window_s": 2.0} | changes
    return Scenario.model_validate(data | {key: value for key, value in wanted.items() if key in data})


def measured(settings: Settings, tmp_path: Path, aiperf: str, **changes: Any) -> RateResult:
    """The only rate of a run against a server."""
    with simulated(settings) as running:
        run = runner.prepare(running.target, scenario(**changes), tmp_path, aiperf, resume=False)
        [result] = runner.execute(run, aiperf, lambda _: None, QUICK)
    return result


def faults(result: RateResult) -> set[str]:
    return {finding.id for finding in result.findings if finding.outcome == "fault"}


def test_lies_are_found(aiperf: str, tmp_path: Path) -> None:
    lies = Misbehaviour(short=0.2, empty=0.1, error_in_stream=0.1, http_500=0.1, without_usage=0.1, kv_recomputed=1)
    result = measured(Settings(PD, misbehaviour=lies), tmp_path, aiperf)
    assert {"failed-requests", "broken-streams", "short-answers", "kv"} <= faults(result)
    assert result.summary.good + sum(result.summary.faults.values()) == result.summary.measured
    assert {"failed", "broken off or empty", "shorter than asked"} <= result.summary.faults.keys()
