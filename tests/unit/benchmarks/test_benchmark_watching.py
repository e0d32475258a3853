"""What is collected for the checks: the load generator's CPU, the time in engines, sizes of files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stand_in_data import request, scenario_data, target_data

from benchmarks import client_watch
from benchmarks.client_watch import ClientSample, ClientWatch
from benchmarks.engine_time import engine_seconds
from benchmarks.evidence import KvProof
from benchmarks.kept_files import damaged_files, file_sizes
from benchmarks.metrics import Counters, parse
from benchmarks.process import run_in_group
from benchmarks.run_directory import RateResult, RunDirectory, RunInfo, create
from benchmarks.scenario import Scenario
from benchmarks.summary import summarize
from benchmarks.target import Target
from benchmarks.terminal import faults

# A leader that sleeps while its worker does what it is told.
LEADER = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
SPIN = "import time\nend = time.monotonic() + {0}\nwhile time.monotonic() < end: pass"
SLEEP = "import time; time.sleep({0})"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_watch, "EVERY_S", 0.2)
    monkeypatch.setattr("benchmarks.process.TICK_S", 0.1)


def watched(program: str, log: Path) -> list[ClientSample]:
    watch = ClientWatch()
    command = [sys.executable, "-c", LEADER, program.format(1.5)]
    run_in_group(command, dict(os.environ), log, lambda _: None, watch.look)
    return watch.samples[3:]  # while Python starts


def test_a_worker_that_spins_is_seen_through_its_idle_leader(quick: None, tmp_path: Path) -> None:
    busy, idle = watched(SPIN, tmp_path / "log"), watched(SLEEP, tmp_path / "log")
    assert len(busy) >= 3
    # On a busy machine a process that does nothing but spin does not get a whole core; it still wants one.
    assert max(look.wanting for look in busy) > 0.8
    assert min(look.wanting for look in idle) < 0.3
    assert all(look.tree >= look.busiest for look in busy)


def test_looking_is_cheap_and_a_process_that_is_gone_does_no_harm() -> None:
    watch = ClientWatch()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    start = time.process_time()
    for _ in range(1000):
        watch.look(gone.pid)
    assert time.process_time() - start < 0.5
    assert len(watch.samples) <= 2


def exposition(*observed: tuple[str, str, int]) -> Counters:
    lines = [
        f'ray_vllm_e2e_request_latency_seconds_bucket{{ReplicaId="{engine}",le="{edge}"}} {count}'
        for engine, edge, count in observed
    ]
    return parse("# TYPE ray_vllm_e2e_request_latency_seconds histogram\n" + "\n".join(lines) + "\n")


def test_time_in_engines_counts_buckets_as_their_upper_edges() -> None:
    aggregated = exposition(("a", "1.0", 2), ("a", "2.0", 6), ("a", "+Inf", 6), ("b", "1.0", 4), ("b", "+Inf", 4))
    assert engine_seconds(aggregated, 10) == pytest.approx((2 * 1 + 4 * 2 + 4 * 1) / 10)
    # Through prefill and then through decode: the ten requests were in two engines each.
    pd = exposition(("prefill", "0.5", 10), ("prefill", "+Inf", 10), ("decode", "2.5", 10), ("decode", "+Inf", 10))
    assert engine_seconds(pd, 10) == pytest.approx(3.0)
    assert engine_seconds(exposition(("a", "1.0", 1), ("a", "+Inf", 2)), 2) is None
    assert engine_seconds(Counters({}), 10) is None


@pytest.fixture
def finished(tmp_path: Path) -> RunDirectory:
    """A run of one rate, with some files."""
    scenario = Scenario.model_validate(scenario_data(rates=[1]))
    info = RunInfo(run_id="1", started="2026-01-01T00:00:00Z", argv=[], tools={})  # pyright: ignore[reportArgumentType]
    run = create(tmp_path, info, Target.model_validate(target_data("http://127.0.0.1:9")), scenario)
    folder, _ = run.start_rate(1)
    (folder / "aiperf").mkdir()
    (folder / "aiperf" / "profile_export.jsonl").write_text('{"a": 1}\n' * 31, encoding="utf-8")
    (folder / "metrics-after-0.prom").write_text("up 1\n", encoding="utf-8")
    requests = [request(n) for n in range(31)]
    proof = KvProof(verdict="not applicable", reasons=[], requests=31)
    summary = summarize(scenario, 1, requests)
    run.finish_rate(RateResult(rate=1, seed=1, summary=summary, kv=proof, findings=[], files=file_sizes(folder)))
    return run


def test_files_that_were_cut_off_or_lost_later_are_named(finished: RunDirectory) -> None:
    assert damaged_files(finished) == []
    folder = finished.rate_folder(1)
    with (folder / "aiperf" / "profile_export.jsonl").open("r+b") as file:
        file.truncate(100)
    (folder / "metrics-after-0.prom").unlink()
    assert damaged_files(finished) == [
        "1 req/s: aiperf/profile_export.jsonl is cut off, 100 bytes of 279",
        "1 req/s: metrics-after-0.prom is missing",
    ]
    assert [finding.id for _, finding in faults(finished)] == ["files"]
