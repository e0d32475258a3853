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
from benchmarks.client_ceiling import demand
from benchmarks.client_watch import CLIENT, SAMPLES, ClientSample, ClientWatch
from benchmarks.course import Step, next_step
from benchmarks.engine_time import engine_seconds
from benchmarks.errors import BenchmarkError
from benchmarks.evidence import WATCHED, all_counted, prove_kv
from benchmarks.highest_rate import write_answers
from benchmarks.image_content import image_content
from benchmarks.kept_files import file_sizes, file_sums
from benchmarks.load import LoadCommand, aiperf_version, build_command, find_aiperf, worker_count
from benchmarks.measured import read_measured, read_rate
from benchmarks.metrics import Counters, Settling, read_patiently, scrape_target, settle
from benchmarks.nic_counters import NicBytes, increase, read_nics
from benchmarks.own_commit import own_commit
from benchmarks.prefix_hits import expected_hit_rate, measured_hit_rate
from benchmarks.priming import prime
from benchmarks.process import run_in_group
from benchmarks.prompt_text import Words, find_words, write_prompts
from benchmarks.prompts import count_alike
from benchmarks.records import RECORDS_FILE, Request, read_records
from benchmarks.resume import check_same_software, find_unfinished
from benchmarks.run_directory import RateResult, RunDirectory, RunInfo
from benchmarks.run_lock import check_free, only_one
from benchmarks.scenario import Scenario, seed_for
from benchmarks.summary import summarize
from benchmarks.target import Target
from benchmarks.transport import judge
from benchmarks.validity import Seen, check_rate
from benchmarks.workload import Workload, build_workload

Say = Callable[[str], None]


def prepare(target: Target, scenario: Scenario, results: Path, aiperf: str, resume: bool) -> RunDirectory:
    """Check everything that can be checked without load, and make (or, with `resume`, find) the run's directory.

    Raises BenchmarkError, and has then started nothing.
    """
    scenario = scenario.pinned()
    preflight.check_results_folder(results)
    version = aiperf_version(find_aiperf(aiperf))
    preflight.check_service(target)
    now = datetime.now(UTC)
    info = RunInfo(
        run_id=run_directory.new_run_id(now),
        started=now,
        argv=sys.argv,
        tools={"aiperf": version, "python": platform.python_version()},
        commit=own_commit(),
        image=image_content(scrape_target(target)) if target.has_metrics else {},
    )
    if not resume:
        return run_directory.create(results, info, target, scenario)
    found = find_unfinished(results, target, scenario)
    check_free(found.path)
    check_same_software(found, info)
    return found


def execute(run: RunDirectory, aiperf: str, say: Say, settling: Settling | None = None) -> list[RateResult]:
    """Measure every rate that a run still lacks, write down up to which its SLOs are met, and return all results.

    `say` is told what is going on, a line at a time. Raises BenchmarkError when a rate cannot be measured, finished
    rates stay; and when another process measures this run.
    """
    with only_one(run.path):
        return _execute(run, aiperf, say, settling)


def _execute(run: RunDirectory, aiperf: str, say: Say, settling: Settling | None) -> list[RateResult]:
    measured = read_measured(run)
    # What the first length goes by matters only where there is a first: is anything left to do at all?
    if next_step(run.scenario, measured, idle_e2e_s=1.0) is not None:
        executable = find_aiperf(aiperf)
        say("looking for words that are one token each")
        words = find_words(executable, run.target.tokenizer, run.path / run_directory.WORDS)
        priming = prime(run.target, run.scenario, say)
        run.keep(run_directory.PRIMING, priming.model_dump_json())
        _quiet_service(run.target, say, settling or Settling())
        idle_e2e_s = priming.whole_answer_s(run.scenario)
        while (step := next_step(run.scenario, measured, idle_e2e_s)) is not None:
            said = partial(_prefixed, say, f"{step.rate:g} req/s ({step.reason}): ")
            result = _measure(run, step, executable, words, said, settling)
            run.finish_rate(result)
            measured.append(read_rate(run, result))
    write_answers(run, measured)
    return run.results()


def _quiet_service(target: Target, say: Say, settling: Settling) -> None:
    """Wait until the service's counters stand still, else the last requests of somebody else would count as ours."""
    if target.has_metrics:
        say(f"waiting {settling.quiet_s:.0f} s for the service's counters to stand still")
        settle(lambda: scrape_target(target), WATCHED, lambda _: False, say, settling)


def _measure(
    run: RunDirectory, step: Step, aiperf: str, words: Words, say: Say, settling: Settling | None
) -> RateResult:
    rate, due = step.rate, step.length.total
    folder, attempt = run.start_rate(rate)
    output, prompts = folder / "aiperf", folder / run_directory.PROMPTS
    seed = seed_for(run.scenario, run.info.run_id, rate, attempt)
    say(f"planning {due} requests")
    workload = build_workload(run.scenario, rate, due, seed, run.target.block_size)
    run_directory.write_atomically(folder / run_directory.WORKLOAD, workload.model_dump_json())
    asked = demand(rate, [(planned.isl, planned.osl) for planned in workload.requests], worker_count())
    if asked.near:  # in every line from here on: a single one may be gone before anybody reads it
        say = partial(_prefixed, say, f"near what this client can offer, {asked}: ")
    write_prompts(prompts, workload, words, seed)
    command = build_command(aiperf, run.target, run.scenario, rate, seed, output, prompts)
    written = {"argv": command.argv, "environment": command.environment, "removed": command.removed}
    run_directory.write_atomically(folder / "command.json", json.dumps(written, indent=2))
    nics_before = _nics(run.target, folder / "nics-before")
    before = read_patiently(partial(scrape_target, run.target, folder / "metrics-before"), say, settling)
    watched = _load(command, folder, due, due / rate, say)
    warmup = max(step.length.warmup, workload.unsettled)
    requests = _enough(read_records(output / RECORDS_FILE, workload), warmup, due, folder)
    delta = _counted(run.target, requests, before, folder, say, settling)
    summary = summarize(run.scenario, rate, requests, warmup)
    proof = prove_kv(run.target, requests, delta)
    if proof.tokens:
        nics = _nic_bytes(nics_before, _nics(run.target, folder / "nics-after"))
        proof.transport = judge(run.target, proof.transfers, proof.tokens.prefill_nodes, nics)
    alike = count_alike(prompts, workload)
    seen = Seen(
        run.scenario,
        summary,
        requests,
        proof,
        alike,
        target=run.target,
        due=due,
        planned_hit_rate=_planned_hit_rate(run.target, workload),
        hit_rate=measured_hit_rate(delta, run.target.deployment.kind),
        engine_s=engine_seconds(delta, len(requests)),
        client=watched,
        demand=asked,
    )
    return RateResult(
        rate=rate,
        seed=seed,
        summary=summary,
        kv=proof,
        findings=check_rate(seen),
        files=file_sizes(folder),
        sha256=file_sums(folder),
    )


def _enough(requests: list[Request], warmup: int, due: int, folder: Path) -> list[Request]:
    """The same, if a window can be told from them. A few that are missing are a finding (`records`), not this."""
    if len(requests) < warmup + 2:
        raise BenchmarkError(f"AIPerf ended after {len(requests)} of {due} requests; see {folder / 'aiperf.log'}")
    return requests


def _planned_hit_rate(target: Target, workload: Workload) -> tuple[float, float]:
    """Least and greatest share of the prompt tokens that are in a prefix cache, by where a router may send requests."""
    caches = target.deployment.prefill or target.deployment.aggregated
    rates = [expected_hit_rate(workload, target.block_size, number) for number in (caches, 1)]
    return min(rates), max(rates)


def _load(command: LoadCommand, folder: Path, total: int, seconds: float, say: Say) -> list[ClientSample]:
    """Run AIPerf, which sends `total` requests in about `seconds`; how it fared, which is kept as client.json too."""
    output, log = folder / "aiperf", folder / "aiperf.log"
    watch = ClientWatch()

    def tick(elapsed: float) -> None:
        done = _lines(output / RECORDS_FILE)
        if done == 0:
            say(f"starting AIPerf ({elapsed:.0f} s; 4 s on an idle machine, a minute on a busy one or the first time)")
        else:
            say(f"{done} of {total} requests answered, {elapsed:.0f} s of about {seconds + 7:.0f} s")

    # In the system's temporary folder, because AIPerf makes Unix sockets there, whose paths must be short.
    with tempfile.TemporaryDirectory(prefix="aiperf-", ignore_cleanup_errors=True) as scratch:
        code = run_in_group(command.argv, command.full_environment(scratch), log, tick, watch.look, Path(scratch))
    run_directory.write_atomically(folder / CLIENT, SAMPLES.dump_json(watch.samples).decode())
    # AIPerf exits with 1 when every request failed, and has written their records then: these are a result.
    if code != 0 and _lines(output / RECORDS_FILE) == 0:
        raise BenchmarkError(f"AIPerf ended with exit code {code} and without a record: {_last_error(log)}; see {log}")
    return watch.samples


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
