"""The real AIPerf against a stand-in: interrupted, resumed, and lied to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import yaml
from impatient import benchmarks
from stand_in_data import scenario_data, target_data
from stand_in_server import Behaviour, standing_in

from benchmarks import run as runner
from benchmarks.client_watch import CLIENT, SAMPLES
from benchmarks.kept_files import damaged_files
from benchmarks.metrics import Settling
from benchmarks.own_commit import own_commit
from benchmarks.prompt_text import Words, prompt
from benchmarks.records import Request, read_records
from benchmarks.run_directory import WORKLOAD, RateResult, RunDirectory, open_run
from benchmarks.scenario import Scenario
from benchmarks.target import Target
from benchmarks.terminal import faults
from benchmarks.transfer import together
from benchmarks.workload import Workload, read_workload

ROOT = Path(__file__).parents[3]
QUICK = Settling(quiet_s=1.0, confirm_s=1.0, limit_s=5, poll_s=0.1)


@dataclass
class Story:
    """What happened to one run: interrupted in its second rate, then resumed."""

    interrupted: subprocess.CompletedProcess[str]
    left_over: list[str]
    kept: list[float]
    resumed: subprocess.CompletedProcess[str]
    run: RunDirectory
    prompts: list[str]


@pytest.fixture(scope="module")
def story(aiperf: str, tokenizer_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Run the command line as a user does, press Ctrl-C in the second rate, look around, and resume."""
    folder = tmp_path_factory.mktemp("story")
    body = scenario_data(rates=[15, 16], osl=6)
    (folder / "scenarios.yaml").write_text(yaml.safe_dump({body.pop("name"): body}), encoding="utf-8")
    with standing_in(Behaviour(publish_delay_s=1.0)) as service:
        target = target_data(service.url, tokenizer=str(tokenizer_folder))
        (folder / "target.json").write_text(json.dumps(target), encoding="utf-8")
        command = [*benchmarks(2, 20), "run", str(folder / "target.json"), "--aiperf", aiperf]
        command += ["--results", str(folder / "results"), "--scenarios", str(folder / "scenarios.yaml")]
        first = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        _wait_for(first, folder, "results/stand-in/*/rates/16/aiperf/profile_export.jsonl")
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=30)
        left_over = _processes_of(folder)
        path = next(folder.glob("results/stand-in/*"))
        kept = [result.rate for result in open_run(path).results()]
        resumed = subprocess.run([*command, "--resume"], cwd=ROOT, capture_output=True, text=True, timeout=240)
        interrupted = subprocess.CompletedProcess(command, first.returncode, out, err)
        return Story(interrupted, left_over, kept, resumed, open_run(path), service.prompts)


def _wait_for(process: subprocess.Popen[str], folder: Path, pattern: str) -> None:
    deadline = time.monotonic() + 240
    while not any(file.stat().st_size for file in folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the second rate never began"
        time.sleep(0.1)


def _processes_of(folder: Path) -> list[str]:
    """Command lines of processes that have to do with a folder, in their arguments or their environment."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            text = " ".join([*process.cmdline(), *process.environ().values()])
        except psutil.Error:
            continue
        if str(folder) in text and process.pid != os.getpid():
            found.append(" ".join(process.cmdline()))
    return found


def test_an_interrupt_leaves_nothing_running_and_keeps_what_was_finished(story: Story) -> None:
    assert story.interrupted.returncode == 130
    assert story.interrupted.stderr == ""
    assert "interrupted: 1 of 2 rates kept" in story.interrupted.stdout
    assert story.left_over == []
    assert story.kept == [15]


def test_resume_finishes_the_run(story: Story) -> None:
    # On a busy machine the stand-in is late, which is rightly a fault, and the command's exit code then says so.
    busy = {
        "queue",
        "ttft-trend",
        "drain",
        "littles-law",
        "offered-rate",
        "arrivals",
        "warm-up",
        "client-late",
        "client-cpu",
    }
    late = {finding.id for _, finding in faults(story.run)} & busy
    assert story.resumed.returncode == (3 if late else 0), story.resumed.stdout + story.resumed.stderr
    assert {finding.id for _, finding in faults(story.run)} == late
    assert [result.rate for result in story.run.results()] == [15, 16]
    assert (story.run.path / "rates" / "16.interrupted-1").is_dir()
    assert story.run.report.stat().st_size > 10_000


def test_the_benchmark_records_its_own_commit(story: Story) -> None:
    assert story.run.info.commit == own_commit()


def test_every_rate_is_proven_and_counted(story: Story) -> None:
    for result in story.run.results():
        expected = len(read_workload(story.run.rate_folder(result.rate) / WORKLOAD).requests)
        assert expected >= story.run.scenario.measured_requests(result.rate)
        assert result.kv.verdict == "proven", result.kv.reasons
        assert result.kv.requests == result.summary.requests_sent == expected
        assert result.summary.good == result.summary.measured
        assert result.summary.served > 0
        assert result.summary.slo_met is True
        assert result.kv.transport is not None
        assert (result.kv.transport.label, result.kv.transport.outcome) == ("tcp", "note")
        reads = together(result.kv.transfers)
        assert reads is not None
        assert (reads.transfers, reads.bytes) == (expected, result.kv.expected_bytes)
        assert (reads.mean_post_ms, reads.mean_transfer_ms) == (pytest.approx(1), pytest.approx(2))
        assert (result.summary.requests_sent, damaged_files(story.run)) == (expected, [])
    assert "proven tcp" in story.resumed.stdout


def test_the_load_generator_is_watched(story: Story) -> None:
    for result in story.run.results():
        kept = (story.run.rate_folder(result.rate) / CLIENT).read_bytes()
        assert max(look.tree for look in SAMPLES.validate_json(kept)) > 0.1
        seen = {finding.id: finding.evidence for finding in result.findings}
        assert seen["client-cpu"]["looks"]
        assert seen["prefix-hit-rate"] == {"measured": 0.0, "planned_lowest": 0.0, "planned_highest": 0.0}


def test_no_prompt_is_sent_twice_not_even_after_an_interruption(story: Story) -> None:
    finished = sum(result.kv.requests for result in story.run.results())
    assert len(story.prompts) > finished  # some were sent before the interruption
    assert len(set(story.prompts)) == len(story.prompts)
    assert len({prompt[:16] for prompt in story.prompts}) == len(story.prompts)


def test_a_service_that_lies_is_found_out(aiperf: str, tokenizer_folder: Path, tmp_path: Path) -> None:
    lies = Behaviour(short_every=5, error_every=7, empty_every=11, kv_factor=0.5, tokens_per_event=2)
    with standing_in(lies) as service:
        target = Target.model_validate(target_data(service.url, tokenizer=str(tokenizer_folder)))
        scenario = Scenario.model_validate(scenario_data(rates=[20], prefix_hit_rate=0.5))
        run = runner.prepare(target, scenario, tmp_path, aiperf, resume=False)
        result = runner.execute(run, aiperf, lambda _: None, QUICK)[0]
        bodies: list[dict[str, Any]] = service.bodies
    found = {finding.id for _, finding in faults(run)}
    # Half of each prompt is shared, and this service has no prefix cache.
    assert {"short-answers", "broken-streams", "empty-answers", "kv", "kv-bytes", "prefix-hit-rate"} <= found
    batching = next(finding for finding in result.findings if finding.id == "stream-batching")
    assert batching.outcome == "note"
    assert batching.evidence["tokens_per_chunk"] == pytest.approx(2.0, abs=0.01)
    assert set(result.summary.faults) == {"shorter than asked", "broken off or empty", "failed"}
    assert result.summary.good + sum(result.summary.faults.values()) == result.summary.measured
    assert {body["max_tokens"] for body in bodies} == {8}
    assert all(body["ignore_eos"] is True and "min_tokens" not in body for body in bodies)
    # Half of each prompt is a prefix that all share: 32 of 64 tokens, which are bytes here.
    assert len({str(body["prompt"])[:32] for body in bodies}) == 1
    assert len({str(body["prompt"])[:64] for body in bodies}) == len(bodies)


@dataclass
class Measured:
    """The one rate of a run: what was planned, AIPerf's records in the order in which they were due, what arrived."""

    result: RateResult
    words: Words
    workload: Workload
    records: list[Request]
    bodies: list[dict[str, Any]]


def measured(scenario: Scenario, aiperf: str, tokenizer_folder: Path, results: Path) -> Measured:
    """Run a scenario of one rate against a good service."""
    with standing_in() as service:
        target = Target.model_validate(target_data(service.url, tokenizer=str(tokenizer_folder)))
        run = runner.prepare(target, scenario, results, aiperf, resume=False)
        [result] = runner.execute(run, aiperf, lambda _: None, QUICK)
        folder = run.rate_folder(result.rate)
        workload = read_workload(folder / "workload.json")
        records = read_records(folder / "aiperf" / "profile_export.jsonl", workload)
        words = Words.model_validate_json((run.path / "words.json").read_bytes())
        return Measured(result, words, workload, sorted(records, key=lambda record: record.due_s), service.bodies)


def test_what_arrives_is_what_was_planned(aiperf: str, tokenizer_folder: Path, tmp_path: Path) -> None:
    """Lengths of prompts and answers, order, identities, shared blocks, and independent arrivals at the rate."""
    isl = {"lognormal": {"mean": 300, "sigma": 0.7, "lowest": 40, "highest": 900}}
    osl = {"lognormal": {"mean": 10, "sigma": 0.5, "lowest": 3, "highest": 30}}
    data = scenario_data(isl=isl, osl=osl, prefix_hit_rate=0.4, rates=[30], window_s=10)
    seen = measured(Scenario.model_validate(data), aiperf, tokenizer_folder, tmp_path)
    workload, records = seen.workload, seen.records
    assert [record.prompt_id for record in records] == [planned.id for planned in workload.requests]
    assert [record.prompt_tokens for record in records] == [planned.isl for planned in workload.requests]
    assert [record.output_tokens for record in records] == [planned.osl for planned in workload.requests]
    assert len({planned.isl for planned in workload.requests}) > 50
    assert seen.result.summary.good == seen.result.summary.measured
    asked = {(len(str(body["prompt"])), body["max_tokens"]) for body in seen.bodies}
    assert asked == {(planned.isl, planned.osl) for planned in workload.requests}
    texts = [prompt(planned, workload.block_size, seen.words, seen.result.seed) for planned in workload.requests]
    assert sorted(texts) == sorted(str(body["prompt"]) for body in seen.bodies)
    assert workload.hit_rate(16, after=20) == pytest.approx(0.4, abs=0.01)
    # The gaps of Poisson arrivals are exponential: 39 % are shorter than half their mean and 14 % longer than twice,
    # of even ones none. Shares, as a busy machine holds the client up now and then: one long gap, then some short ones.
    gaps = np.diff([record.due_s for record in records])
    assert gaps.mean() == pytest.approx(1 / 30, rel=0.25)
    assert 0.28 < np.mean(gaps < gaps.mean() / 2) < 0.65
    assert 0.04 < np.mean(gaps > gaps.mean() * 2) < 0.22


def test_a_trace_is_replayed_at_the_offered_rate(aiperf: str, tokenizer_folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    # Bursts of four requests, a second apart as recorded, which share a block of 512 tokens.
    lines = [
        {"timestamp": 1000 * (n // 4), "input_length": 520 + n, "output_length": 3 + n % 5, "hash_ids": [0, n + 1]}
        for n in range(40)
    ]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    data = scenario_data(isl=None, osl=None, trace=str(trace), arrivals="trace", rates=[16], min_requests=40)
    seen = measured(Scenario.model_validate(data), aiperf, tokenizer_folder, tmp_path / "results")
    # The four of a burst are due in the same moment, and leave in any order.
    workload, records = seen.workload, sorted(seen.records, key=lambda record: record.prompt_id)
    assert [record.prompt_id for record in records] == [planned.id for planned in workload.requests]
    assert [(record.prompt_tokens, record.output_tokens) for record in records] == [
        (planned.isl, planned.osl) for planned in workload.requests
    ]
    assert [planned.shared for planned in workload.requests[:40]] == [0, *[512] * 39]
    start = records[0].due_s
    late = [
        record.due_s - start - (planned.at_s or 0) for record, planned in zip(records, workload.requests, strict=True)
    ]
    # Bursts are 0.25 s apart. Most are in time, whatever a busy machine does to some.
    assert np.median(np.abs(late)) < 0.1
    assert seen.result.summary.good == seen.result.summary.measured
