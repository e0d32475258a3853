"""One run: every rate of a scenario against a target, each with its evidence, kept as soon as it is finished."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks import preflight, run_directory
from benchmarks.errors import BenchmarkError
from benchmarks.evidence import WATCHED, all_counted, prove_kv
from benchmarks.image_content import image_content
from benchmarks.load import LoadCommand, aiperf_version, build_command, find_aiperf
from benchmarks.metrics import Counters, Settling, read_patiently, scrape_target, settle
from benchmarks.nic_counters import NicBytes, increase, read_nics
from benchmarks.own_commit import own_commit
from benchmarks.priming import prime
from benchmarks.process import run_in_group
from benchmarks.prompt_text import Words, find_words, write_prompts
from benchmarks.prompts import count_alike
from benchmarks.records import RECORDS_FILE, Request, read_records
from benchmarks.run_directory import RateResult, RunDirectory, RunInfo
from benchmarks.scenario import Scenario, seed_for
from benchmarks.summary import summarize
from benchmarks.target import Target
from benchmarks.transport import judge
from benchmarks.validity import check_rate
from benchmarks.workload import build_workload

Say = Callable[[str], None]


def prepare(target: Target, scenario: Scenario, results: Path, aiperf: str, resume: bool) -> RunDirectory:
    """Check everything that can be checked without load, and make (or, with `resume`, find) the run's directory.

    Raises BenchmarkError, and has then started nothing.
    """
    preflight.check_results_folder(results)
    version = aiperf_version(find_aiperf(aiperf))
    preflight.check_service(target)
    if resume:
        return run_directory.find_unfinished(results, target, scenario)
    now = datetime.now(UTC)
    info = RunInfo(
        run_id=run_directory.new_run_id(now),
        started=now,
        argv=sys.argv,
        tools={"aiperf": version, "python": platform.python_version()},
        commit=own_commit(),
        image=image_content(scrape_target(target)) if target.has_metrics else {},
    )
    return run_directory.create(results, info, target, scenario)


def execute(run: RunDirectory, aiperf: str, say: Say, settling: Settling | None = None) -> list[RateResult]:
    """Run every rate that is not finished yet; return the results of all.

    `say` is told what is going on, a line at a time. Raises BenchmarkError when a rate cannot be measured; finished
    rates stay.
    """
    todo = [rate for rate in run.scenario.sweep if run.finished(rate) is None]
    if todo:
        executable = find_aiperf(aiperf)
        say("looking for words that are one token each")
        words = find_words(executable, run.target.tokenizer, run.path / run_directory.WORDS)
        priming = prime(run.target, run.scenario, say)
        run_directory.write_atomically(run.path / run_directory.PRIMING, priming.model_dump_json())
        _quiet_service(run.target, say, settling or Settling())
        for number, rate in enumerate(todo, start=1):
            said = partial(_prefixed, say, f"{rate:g} req/s ({number} of {len(todo)}): ")
            run.finish_rate(_measure(run, rate, executable, words, said, settling))
    return run.results()


def _quiet_service(target: Target, say: Say, settling: Settling) -> None:
    """Wait until the service's counters stand still, else the last requests of somebody else would count as ours."""
    if target.has_metrics:
        say(f"waiting {settling.quiet_s:.0f} s for the service's counters to stand still")
        settle(lambda: scrape_target(target), WATCHED, lambda _: False, say, settling)


def _measure(
    run: RunDirectory, rate: float, aiperf: str, words: Words, say: Say, settling: Settling | None
) -> RateResult:
    folder, attempt = run.start_rate(rate)
    output, prompts = folder / "aiperf", folder / run_directory.PROMPTS
    seed = seed_for(run.scenario, run.info.run_id, rate, attempt)
    due = run.scenario.warmup_requests(rate) + run.scenario.measured_requests(rate)
    say(f"planning {due} requests")
    workload = build_workload(run.scenario, rate, due, seed, run.target.block_size)
    run_directory.write_atomically(folder / run_directory.WORKLOAD, workload.model_dump_json())
    write_prompts(prompts, workload, words, seed)
    command = build_command(aiperf, run.target, run.scenario, rate, seed, output, prompts)
    written = {"argv": command.argv, "environment": command.environment, "removed": command.removed}
    run_directory.write_atomically(folder / "command.json", json.dumps(written, indent=2))
    nics_before = _nics(run.target, folder / "nics-before")
    before = read_patiently(partial(scrape_target, run.target, folder / "metrics-before"), say, settling)
    _load(command, folder, run.scenario, rate, say)
    requests = read_records(output / RECORDS_FILE, workload)
    delta = _counted(run.target, requests, before, folder, say, settling)
    summary = summarize(run.scenario, rate, requests)
    proof = prove_kv(run.target, requests, delta)
    if proof.tokens:
        nics = _nic_bytes(nics_before, _nics(run.target, folder / "nics-after"))
        proof.transport = judge(run.target, proof.transfers, proof.tokens.prefill_nodes, nics)
    alike = count_alike(prompts, workload)
    findings = check_rate(run.scenario, summary, requests, proof, alike)
    return RateResult(rate=rate, seed=seed, summary=summary, kv=proof, findings=findings)


def _load(command: LoadCommand, folder: Path, scenario: Scenario, rate: float, say: Say) -> None:
    output, log = folder / "aiperf", folder / "aiperf.log"
    total = scenario.warmup_requests(rate) + scenario.measured_requests(rate)

    def tick(elapsed: float) -> None:
        done = _lines(output / RECORDS_FILE)
        if done == 0:
            say(f"starting AIPerf ({elapsed:.0f} s; 4 s on an idle machine, a minute on a busy one or the first time)")
        else:
            say(f"{done} of {total} requests answered, {elapsed:.0f} s of about {scenario.seconds(rate) + 7:.0f} s")

    # In the system's temporary folder, because AIPerf makes Unix sockets there, whose paths must be short.
    with tempfile.TemporaryDirectory(prefix="aiperf-", ignore_cleanup_errors=True) as scratch:
        code = run_in_group(command.argv, command.full_environment(scratch), log, tick)
    # AIPerf exits with 1 when every request failed, and has written their records then: these are a result.
    if code != 0 and _lines(output / RECORDS_FILE) == 0:
        raise BenchmarkError(f"AIPerf ended with exit code {code} and without a record: {_last_error(log)}; see {log}")


def _counted(
    target: Target, requests: list[Request], before: Counters, folder: Path, say: Say, settling: Settling | None
) -> Counters:
    """The increase of the service's counters since `before`, once they have settled."""
    if not target.has_metrics:
        return Counters({})

    def complete(now: Counters) -> bool:
        return all_counted(target, requests, now.since(before))

    read = partial(scrape_target, target, folder / "metrics-after")
    return settle(read, WATCHED, complete, say, settling).since(before)


def _nics(target: Target, keep: Path) -> Counters | str | None:
    """The NICs' counters, why they cannot be read, or None when the target names no node-exporter.

    A rate is not lost with them: they say over what KV went, and the proof that it went does not need them.
    """
    if not target.has_node_exporters:
        return None
    try:
        return read_nics(target, keep)
    except BenchmarkError as error:
        return str(error)


def _nic_bytes(before: Counters | str | None, after: Counters | str | None) -> NicBytes | None:
    if isinstance(before, Counters) and isinstance(after, Counters):
        return increase(before, after)
    problem = before if isinstance(before, str) else after
    return NicBytes(problem=problem) if isinstance(problem, str) else None


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _last_error(log: Path) -> str:
    lines = [line.strip(" │•") for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    wrong = [line for line in lines if "ERROR" in line or "Error" in line]
    return (wrong or [line for line in lines if line] or ["no output"])[-1][:300]


def _prefixed(say: Say, prefix: str, text: str) -> None:
    say(prefix + text)
