"""Runs as the benchmark leaves them, of simulated engines on a clock of its own: to show reports without measuring.

Everything they are shown with says so: their stack, model, scenario and versions are named simulated.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.course import Step, next_step
from benchmarks.evidence import KvProof
from benchmarks.highest_rate import write_answers
from benchmarks.measured import Measured
from benchmarks.priming import Priming
from benchmarks.records import NS, RECORDS_FILE, Request
from benchmarks.run_directory import PRIMING, WORKLOAD, RateResult, RunDirectory, RunInfo, create, write_atomically
from benchmarks.scenario import Scenario
from benchmarks.summary import summarize
from benchmarks.target import Target
from benchmarks.validity import Seen, check_rate, shows_overload
from benchmarks.workload import Planned, Workload
from serving.topology import Topology, parse_topology
from tools.simulated_server.model import Arrangement, Speed
from tools.simulated_server.virtual import play, poisson

MODEL = "simulated queueing model, no engine"
# Numbers of no hardware, chosen so that both arrangements reach their limits at a few requests a second.
SPEED = Speed(base=0.011, per_sequence=0.00012, per_prompt_token=0.00002, noise=0.06)
_TRANSFER_S, _TRANSFER_LATENCY_S = 2e-6, 0.03
_IDLE_E2E_S = 3.0
_BLOCK, _BYTES = 16, 96_256


def simulated_run(results: Path, scenario: Scenario, topology: str, started: datetime) -> RunDirectory:
    """A finished run of a scenario; its minute of `started` seeds it."""
    laid_out = parse_topology(topology)
    info = RunInfo(
        run_id=f"{started:%Y%m%dT%H%M%SZ}-5131",
        started=started,
        argv=[],
        tools={"simulated server": "virtual clock"},
    )
    run = create(results, info, Target.model_validate(_target(topology, laid_out, scenario.name)), scenario)
    write_atomically(run.path / PRIMING, Priming(seconds=[0.41, 0.4, 0.4], awake=True).model_dump_json())
    measured: list[Measured] = []
    while (step := next_step(scenario, measured, _IDLE_E2E_S)) is not None:
        folder, _ = run.start_rate(step.rate)
        write_atomically(folder / "command.json", json.dumps({"argv": ["simulated", "no AIPerf ran"]}))
        requests = _requests(scenario, step, _arrangement(laid_out, scenario), started.minute * 100 + len(measured))
        _write_records(folder, requests)
        result = _result(run, step, requests, started.minute * 100 + len(measured))
        run.finish_rate(result)
        window = requests[result.summary.warmup_requests :]
        measured.append(Measured(step.rate, window, len(requests), shows_overload(result.findings)))
    write_answers(run, measured)
    return run


def over_the_range(scenario: Scenario) -> Scenario:
    """The same scenario as a sweep of six rates in equal ratio over the range of its search."""
    assert scenario.search is not None  # noqa: S101
    step = (scenario.search.highest / scenario.search.lowest) ** (1 / 5)
    return scenario.with_rates([float(f"{scenario.search.lowest * step**number:.3g}") for number in range(6)])


def _arrangement(topology: Topology, scenario: Scenario) -> Arrangement:
    hits = scenario.prefix_hit_rate
    if topology.disaggregated:
        return Arrangement(
            SPEED,
            topology.decode,
            topology.prefill,
            transfer_seconds=_TRANSFER_S,
            transfer_latency=_TRANSFER_LATENCY_S,
            prefix_hit=hits,
        )
    return Arrangement(SPEED, topology.aggregated, prefix_hit=hits)


def _requests(scenario: Scenario, step: Step, arrangement: Arrangement, seed: int) -> list[Request]:
    isl, osl = scenario.longest
    answers = play(arrangement, poisson(step.rate, step.length.total, isl, osl, seed), seed)
    return [
        Request(
            sent_s=answer.at,
            due_s=answer.at,
            end_s=answer.end,
            prompt_id=str(number),
            prompt_tokens=isl,
            output_tokens=answer.tokens,
            ttft_ms=1000 * (answer.first - answer.at),
            e2e_ms=1000 * (answer.end - answer.at),
            gaps_ms=(),
            error=None,
            asked=osl,
            planned_prompt=isl,
        )
        for number, answer in enumerate(answers)
    ]


def _write_records(folder: Path, requests: list[Request]) -> None:
    """The requests as AIPerf records them, and what was planned, for whoever reads a run's raw records."""
    planned = [Planned(id=r.prompt_id, isl=r.planned_prompt or 1, osl=r.asked, blocks=[]) for r in requests]
    workload = Workload(block_size=_BLOCK, unsettled=0, requests=planned)
    write_atomically(folder / WORKLOAD, workload.model_dump_json())
    (folder / "aiperf").mkdir()
    write_atomically(folder / "aiperf" / RECORDS_FILE, "\n".join(json.dumps(_record(r)) for r in requests))


def _record(request: Request) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "time_to_first_token": request.ttft_ms,
        "request_latency": request.e2e_ms,
        "usage_prompt_tokens": request.prompt_tokens,
        "usage_completion_tokens": request.output_tokens,
        "inter_chunk_latency": [],
    }
    times = {
        "credit_issued_ns": round(request.due_s * NS),
        "request_start_ns": round(request.sent_s * NS),
        "request_end_ns": round(request.end_s * NS),
    }
    return {
        "metadata": {"conversation_id": request.prompt_id, **times},
        "metrics": {name: {"value": value} for name, value in metrics.items()},
    }


def _result(run: RunDirectory, step: Step, requests: list[Request], seed: int) -> RateResult:
    summary = summarize(run.scenario, step.rate, requests, step.length.warmup)
    proof = _proof(run.target, len(requests), run.scenario.longest[0])
    findings = check_rate(Seen(run.scenario, summary, requests, proof, alike=0, due=step.length.total))
    return RateResult(rate=step.rate, seed=seed, summary=summary, kv=proof, findings=findings)


def _proof(target: Target, requests: int, isl: int) -> KvProof:
    if target.kv is None:
        return KvProof(verdict="not applicable", reasons=[], requests=requests, foreign_requests=0)
    moved = requests * -(-isl // _BLOCK) * _BLOCK * _BYTES
    return KvProof(
        verdict="proven",
        reasons=[],
        requests=requests,
        prompt_tokens=requests * isl,
        expected_bytes=moved,
        counted_bytes=moved,
        expected_transfers=requests,
        counted_transfers=requests,
        failures={"failed transfers": 0, "failed notifications": 0, "expired KV blocks": 0},
        decode_computed_tokens=requests,
        foreign_requests=0,
    )


def _target(topology: str, laid_out: Topology, scenario: str) -> dict[str, Any]:
    engine = {"simulated": True, "token_budget": SPEED.token_budget}
    return {
        "stack": f"simulated-{topology}",
        "url": "http://127.0.0.1:9",
        "model": MODEL,
        "tokenizer": "none",
        "scenario": scenario,
        "metrics_urls": ["http://127.0.0.1:9/metrics"],
        "deployment": {
            "kind": "pd" if laid_out.disaggregated else "aggregated",
            "topology": topology,
            "platform": "cpu",
            "prefill": laid_out.prefill,
            "decode": laid_out.decode,
            "aggregated": laid_out.aggregated,
            "gpus": 0,
            "dummy_weights": True,
            "engine": dict.fromkeys(laid_out.roles, engine),
        },
        "kv": {"block_size": _BLOCK, "bytes_per_token": _BYTES} if laid_out.disaggregated else None,
        "versions": {"simulated engines": "no GPU, no vLLM"},
        "commit": "",
    }
