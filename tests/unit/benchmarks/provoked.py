"""Each kind of finding, provoked: a run like a clean one in all but one thing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from recorded_metrics import SHORT_AND_LONG, proof_of
from simulated_runs import clean, samples, with_requests
from stand_in_data import aggregated, scenario_data, target_data
from stand_in_nics import carried

from benchmarks import causes
from benchmarks.client_ceiling import demand
from benchmarks.evidence import KvProof
from benchmarks.priming import Priming
from benchmarks.prompt_tokens import PromptTokens
from benchmarks.records import Request
from benchmarks.scenario import Scenario
from benchmarks.target import Fabric, Target
from benchmarks.transport import Transport
from benchmarks.validity import Pair, RunSeen, Seen, Side

URL = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Provoked:
    """`subject` shows the finding with `outcome`. `unseen`: in a clean run the check says nothing at all, not `ok`."""

    subject: Callable[[], Any]
    outcome: str = "fault"
    unseen: bool = False


def edited(change: Callable[[int, Request], Request]) -> Seen:
    """A clean run with a change to each request, given its number; the warm-up is the first 80."""
    run = clean()
    return with_requests(run, [change(number, request) for number, request in enumerate(run.requests)])


def some(every: int, **changes: Any) -> Seen:
    """A clean run with changes to every so many requests of the window."""
    return edited(lambda n, r: replace(r, **changes) if n >= 80 and n % every == 0 else r)


def at(times: Callable[[int, float], float]) -> Seen:
    """A clean run whose requests were sent at other times: of the number and the time from the first on."""

    def moved(number: int, request: Request) -> Request:
        first = clean().requests[0].sent_s
        when = first + times(number, request.sent_s - first)
        return replace(request, sent_s=when, due_s=when - 0.0005, end_s=when + (request.e2e_ms or 0) / 1000)

    return edited(moved)


def slower(factor: Callable[[float], float]) -> Callable[[int, Request], Request]:
    """Stretches a request's times by a factor that depends on when it was sent: 0 with the first, 1 with the last."""
    first, last = clean().requests[0].sent_s, clean().requests[-1].sent_s

    def change(_: int, request: Request) -> Request:
        by = factor((request.sent_s - first) / (last - first))
        e2e, ttft = by * (request.e2e_ms or 0), by * (request.ttft_ms or 0)
        return replace(request, e2e_ms=e2e, ttft_ms=ttft, end_s=request.sent_s + e2e / 1000)

    return change


def hanging(number: int, request: Request) -> Request:
    """Every eighth request is never answered and given up half a minute after the load."""
    if number % 8:
        return request
    return replace(request, error="request timed out", end_s=clean().requests[-1].sent_s + 30)


def slow_end(number: int, request: Request) -> Request:
    return (
        replace(request, end_s=request.sent_s + 60, e2e_ms=60_000.0) if number >= len(clean().requests) - 3 else request
    )


def with_proof(proof: KvProof) -> Seen:
    return replace(clean(), proof=proof)


def with_cause(cause: causes.Cause | None) -> Seen:
    assert cause
    return with_proof(KvProof(verdict="failed", reasons=[cause.sentence], causes=[cause], requests=560))


def with_path(path: Transport) -> Seen:
    return with_proof(clean().proof.model_copy(update={"transport": path, "counted_bytes": 800_000}))


def busy_client() -> Seen:
    run = clean()
    return replace(
        run, client=[s.model_copy(update={"busiest": 0.98, "wanting": 0.99}) for s in samples(run.requests, 1)]
    )


def stepped_clock() -> Seen:
    run = clean()
    looks = samples(run.requests, 1)
    return replace(
        run, client=[s.model_copy(update={"wall_s": s.wall_s + 2.0}) if n > 30 else s for n, s in enumerate(looks)]
    )


def uneven_nics() -> Seen:
    nics = carried(800_000)
    nics.nics[-1].rdma_received = 0
    return with_path(Transport(label="rdma", outcome="ok", reason="counted", nics=nics))


RATE: dict[str, Provoked] = {
    "records": Provoked(lambda: with_requests(clean(), clean().requests[:-7])),
    "unreachable": Provoked(
        lambda: some(10, error="Cannot connect to host 127.0.0.1:8000 ssl:default", output_tokens=None)
    ),
    "failed-requests": Provoked(lambda: some(10, error="HTTP 503: no healthy upstream", output_tokens=None)),
    "broken-streams": Provoked(lambda: some(50, output_tokens=None, prompt_tokens=None)),
    "empty-answers": Provoked(lambda: some(50, output_tokens=0)),
    "short-answers": Provoked(lambda: some(5, output_tokens=9)),
    "long-answers": Provoked(lambda: some(5, output_tokens=32)),
    "times": Provoked(lambda: some(5, ttft_ms=-3.0)),
    "input-length": Provoked(lambda: edited(lambda _, r: replace(r, prompt_tokens=540))),
    "offered-rate": Provoked(lambda: at(lambda _, time: 1.4 * time)),
    "arrivals": Provoked(lambda: at(lambda number, _: number / 8)),
    "samples": Provoked(lambda: with_requests(clean(), clean().requests[:100])),
    "window": Provoked(lambda: edited(slower(lambda _: 20.0))),
    "queue-memory": Provoked(lambda: edited(slower(lambda when: 6 + 5 * math.cos(4 * math.pi * when))), "note"),
    "warm-up": Provoked(lambda: edited(slower(lambda when: 1 + 5 * when))),
    "queue": Provoked(lambda: edited(slower(lambda when: 1 + 5 * when))),
    "ttft-trend": Provoked(lambda: edited(slower(lambda when: 1 + 5 * when))),
    "change": Provoked(lambda: edited(slower(lambda when: 1.5 if when > 0.75 else 1.0))),
    "littles-law": Provoked(lambda: edited(hanging)),
    "drain": Provoked(lambda: edited(slow_end)),
    "delivery": Provoked(lambda: replace(edited(slower(lambda _: 6.0)), engine_s=0.6)),
    "stream-batching": Provoked(lambda: edited(lambda _, r: replace(r, gaps_ms=(0.0, 0.0, 0.0, 120.0) * 3)), "note"),
    "client-late": Provoked(lambda: edited(lambda _, r: replace(r, due_s=r.sent_s - 0.3))),
    "client-ceiling": Provoked(lambda: replace(clean(), demand=demand(100.0, [(512, 16)], workers=1)), "note"),
    "client-cpu": Provoked(busy_client),
    "clock-steps": Provoked(stepped_clock),
    "prompts": Provoked(lambda: edited(lambda number, r: replace(r, prompt_id=f"prompt-{number % 500}"))),
    "prefix-hit-rate": Provoked(lambda: replace(clean(), hit_rate=0.3)),
    "kv": Provoked(lambda: with_proof(proof_of("recomputed"))),
    "kv-missing": Provoked(lambda: with_proof(proof_of("recomputed")), unseen=True),
    "kv-recomputed": Provoked(lambda: with_proof(proof_of("recomputed")), unseen=True),
    "kv-expired": Provoked(lambda: with_proof(proof_of("expired")), unseen=True),
    "kv-failed-transfers": Provoked(lambda: with_proof(proof_of("failed")), unseen=True),
    "kv-unnotified": Provoked(lambda: with_proof(proof_of("failed")), unseen=True),
    "kv-transfers": Provoked(lambda: with_proof(proof_of("failed")), unseen=True),
    "kv-bytes": Provoked(lambda: with_proof(proof_of("failed")), unseen=True),
    "kv-block-size": Provoked(lambda: with_proof(proof_of("block-sizes", SHORT_AND_LONG)), unseen=True),
    "kv-unreceived": Provoked(lambda: with_cause(causes.unreceived(PromptTokens(), 560)), unseen=True),
    "kv-computed-unknown": Provoked(
        lambda: with_cause(causes.computed_unknown(PromptTokens(received=9_216))), unseen=True
    ),
    "kv-unreadable": Provoked(lambda: with_cause(causes.unreadable(["ray_pd_kv_bytes_total"])), unseen=True),
    "kv-uncounted": Provoked(lambda: with_cause(causes.uncounted(560, 558)), unseen=True),
    "transport": Provoked(
        lambda: with_path(
            Transport(label="tcp", outcome="fault", reason="UCX_TLS=tcp in decode's engines leaves TCP, no RDMA")
        )
    ),
    "rdma-gate": Provoked(
        lambda: with_path(
            Transport(label="rdma", outcome="ok", reason="counted", gate=Fabric(gate="off", reason="fabric.gate"))
        ),
        "note",
    ),
    "nics": Provoked(uneven_nics, "note", unseen=True),
    "replicas": Provoked(
        lambda: with_proof(
            clean().proof.model_copy(
                update={"replica_changes": ["a replica is gone (restarted or scaled away) during the rate: dw26mbl2"]}
            )
        )
    ),
    "foreign-traffic": Provoked(lambda: with_proof(clean().proof.model_copy(update={"foreign_requests": 12}))),
}

AWAKE = Priming(seconds=[5.0, 0.1, 0.1, 0.1], awake=True)


def run(**changes: Any) -> RunSeen:
    """A whole run in which nothing is wrong but what changes."""
    target = target_data(URL, versions={"vllm": "0.18"})
    target["deployment"]["dummy_weights"] = changes.pop("dummy_weights", False)
    values = {"scenario": Scenario.model_validate(scenario_data()), "priming": AWAKE, "image": {"vllm": ["0.18"]}}
    return RunSeen(**{"target": Target.model_validate(target), **values, **changes})


RUN: dict[str, Provoked] = {
    "files": Provoked(lambda: run(damaged=["2 req/s: aiperf/profile_export.jsonl is cut off, 4,096 bytes of 136,853"])),
    "image": Provoked(lambda: run(image={"vllm": ["0.17"]})),
    "priming": Provoked(lambda: run(priming=Priming(seconds=[9.0, 4.0, 2.0, 0.5], awake=False)), "note"),
    "weights": Provoked(lambda: run(dummy_weights=True), "note"),
    "seed": Provoked(lambda: run(scenario=Scenario.model_validate(scenario_data(seed=3))), "note"),
}

ENGINE = {
    "max_num_batched_tokens": 8192,
    "max_num_seqs": 256,
    "max_model_len": 16384,
    "gpu_memory_utilization": 0.85,
    "kv_cache_dtype": "fp8",
    "block_size": 16,
    "load_format": "dummy",
    "tensor_parallel_size": 8,
}
MEASURED_BY = {"aiperf": ["0.13"], "benchmark commit": ["0123abcd"]}
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def pair(
    engine: dict[str, Any] | None = None,
    deployment: dict[str, Any] | None = None,
    asked: dict[str, Any] | None = None,
    image: dict[str, list[str]] | None = None,
    client: dict[str, list[str]] | None = None,
    hours: float = 3,
    **target: Any,
) -> Pair:
    """Aggregated against PD on as many GPUs, with changes to PD's decode engine, layout, scenario, image, target."""
    base, candidate = aggregated(URL), target_data(URL, **target)
    layout = {"platform": "rocm", "gpus": 16}
    base["deployment"] |= layout | {"engine": {"aggregated": ENGINE}}
    moving = ENGINE | {"kv_transfer_config": {"kv_connector": "NixlConnector"}}
    roles = {"prefill": moving, "decode": moving | (engine or {})}
    candidate["deployment"] |= layout | {"engine": roles} | (deployment or {})
    return Pair(
        Side(
            "agg-2",
            Target.model_validate(base),
            Scenario.model_validate(scenario_data()),
            {"vllm": ["0.18"]},
            MEASURED_BY,
            [STARTED],
        ),
        Side(
            "pd-1p1d",
            Target.model_validate(candidate),
            Scenario.model_validate(scenario_data(**(asked or {}))),
            image or {"vllm": ["0.18"], "nixl": ["1.0"]},
            MEASURED_BY | (client or {}),
            [STARTED + timedelta(hours=hours)],
        ),
    )


COMPARISON: dict[str, Provoked] = {
    "unequal-gpus": Provoked(lambda: pair(deployment={"gpus": 24})),
    "unequal-budgets": Provoked(lambda: pair({"max_num_batched_tokens": 4096})),
    "unequal-dtype": Provoked(lambda: pair({"kv_cache_dtype": "auto"})),
    "unequal-caches": Provoked(lambda: pair({"block_size": 128})),
    "unequal-weights": Provoked(lambda: pair({"load_format": "auto"})),
    "unknown-arguments": Provoked(lambda: pair(deployment={"engine": {"prefill": ENGINE}})),
    "unequal-arguments": Provoked(lambda: pair({"enforce_eager": True}), "note"),
    "unequal-model": Provoked(lambda: pair(model="another-model")),
    "unequal-image": Provoked(lambda: pair(image={"vllm": ["0.17"]})),
    "unequal-scenario": Provoked(lambda: pair(asked={"osl": 16})),
    "unequal-slo": Provoked(
        lambda: pair(asked={"slo": [{"metric": "tpot", "statistic": "p90", "bound": 25, "unit": "ms"}]})
    ),
    "unequal-client": Provoked(lambda: pair(client={"aiperf": ["0.14"]})),
    "runs-apart": Provoked(lambda: pair(hours=24 * 40), "note"),
}
