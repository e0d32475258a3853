"""Every kind of finding there is."""

from __future__ import annotations

from typing import Any

from benchmarks.validity import (
    answers,
    cache,
    client,
    comparison,
    files,
    kv,
    load,
    measuring,
    service,
    settings,
    steadiness,
    stream,
)
from benchmarks.validity.finding import Kind
from benchmarks.validity.seen import Pair, RunSeen, Seen

OF_RATE: tuple[Kind[Seen], ...] = (
    files.records,
    answers.unreachable,
    answers.failed,
    answers.broken,
    answers.empty,
    answers.short,
    answers.long,
    answers.times,
    answers.input_length,
    load.offered_rate,
    load.arrivals,
    steadiness.samples,
    steadiness.window,
    steadiness.queue_memory,
    steadiness.warm_up,
    steadiness.queue,
    steadiness.ttft_trend,
    steadiness.change,
    steadiness.littles_law,
    steadiness.drain,
    stream.delivery,
    stream.batching,
    client.late,
    client.ceiling,
    client.cpu,
    client.clock_steps,
    cache.prompts,
    cache.prefix_hit_rate,
    kv.verdict,
    kv.missing,
    kv.recomputed,
    kv.expired,
    kv.failed_transfers,
    kv.unnotified,
    kv.transfers,
    kv.wrong_bytes,
    kv.block_size,
    kv.unreceived,
    kv.uncounted,
    kv.computed_unknown,
    kv.unreadable,
    kv.transport,
    kv.rdma_gate,
    kv.nics,
    service.replicas,
    service.foreign_traffic,
)
OF_RUN: tuple[Kind[RunSeen], ...] = (
    files.files,
    settings.image,
    settings.priming,
    settings.weights,
    settings.seed,
)
OF_COMPARISON: tuple[Kind[Pair], ...] = (
    comparison.gpus,
    comparison.budgets,
    comparison.dtype,
    comparison.caches,
    comparison.weights,
    comparison.unknown,
    comparison.arguments,
    comparison.model,
    comparison.image,
    comparison.scenario,
    comparison.slo,
    measuring.client,
    measuring.apart,
)
KINDS: dict[str, Kind[Any]] = {kind.id: kind for kind in (*OF_RATE, *OF_RUN, *OF_COMPARISON)}
