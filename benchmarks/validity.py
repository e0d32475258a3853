"""Is a measurement worth anything? Each check looks for one known way of lying to oneself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel

from benchmarks.evidence import KvProof
from benchmarks.image_content import deviations
from benchmarks.priming import Priming
from benchmarks.records import Request
from benchmarks.scenario import Scenario
from benchmarks.summary import RateSummary, samples_needed
from benchmarks.target import Target
from benchmarks.transport import evenness

# A rise of E2E from the first to the last third of the window counts as a growing queue when it is both this large and
# this many standard errors away from nothing (Welch's t; 3 is exceeded by chance once in 740 times).
GROWTH = 0.25
SIGMAS = 3.0
# Prompts that go on alike may be answered from the prefix cache. By chance none of ours do.
ALIKE = 0.01


class Finding(BaseModel):
    """One check's outcome. `ok`; `note`: say so when quoting the numbers; `fault`: the numbers must not be used."""

    id: str
    outcome: Literal["ok", "note", "fault"]
    sentence: str


def check_rate(
    scenario: Scenario, summary: RateSummary, requests: Sequence[Request], proof: KvProof, alike: int
) -> list[Finding]:
    """All checks of one rate. `alike` counts prompts that go on like another one after what they are meant to share."""
    return [
        _sent(scenario, summary),
        _answers(summary),
        _offered(summary),
        _samples(scenario, summary),
        _warmup(scenario, summary),
        _queue(requests[summary.warmup_requests :]),
        _prompts(summary, requests, alike),
        *_kv(proof),
        *_path(proof),
        _foreign(proof),
        _replicas(proof),
    ]


def check_run(
    target: Target, scenario: Scenario, priming: Priming | None, image: Mapping[str, list[str]]
) -> list[Finding]:
    """Checks that hold for a whole run. `priming` is None when the service was not woken; `image` as in RunInfo."""
    return [
        *_image(target, image),
        _priming(priming),
        _finding("weights", "note", "dummy weights: latency only, the answers mean nothing")
        if target.deployment.dummy_weights
        else _finding("weights", "ok", "real weights"),
        _finding("seed", "ok", "prompts and arrivals are new in this run")
        if scenario.seed == "per-run"
        else _finding("seed", "note", f"fixed seed {scenario.seed}: a second run hits the server's prefix cache"),
    ]


def _image(target: Target, image: Mapping[str, list[str]]) -> list[Finding]:
    if not image:  # a Ray cluster without our image; the target's versions are then what its checkout pins
        return []
    wrong = deviations(target.versions, image)
    return [_finding("image", "fault" if wrong else "ok", "; ".join(wrong) or "the engines' image is as pinned")]


def _priming(priming: Priming | None) -> Finding:
    if priming is None:
        return _finding("priming", "note", "the service was not woken before the measurement")
    taken = priming.seconds
    sentence = f"{len(taken)} requests woke the service: the first took {taken[0]:.2f} s, the last {taken[-1]:.2f} s"
    if priming.awake:
        return _finding("priming", "ok", sentence)
    return _finding("priming", "note", sentence + ", and their times had not become alike")


def _sent(scenario: Scenario, summary: RateSummary) -> Finding:
    due = scenario.warmup_requests(summary.offered) + scenario.measured_requests(summary.offered)
    sentence = f"{summary.requests_sent} of {due} requests have a record"
    return _finding("records", "ok" if summary.requests_sent == due else "fault", sentence)


def _answers(summary: RateSummary) -> Finding:
    if not summary.faults:
        return _finding("answers", "ok", f"all {summary.measured} answers complete")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(summary.faults.items()))
    first = f"; first error: {summary.first_error}" if summary.first_error else ""
    return _finding("answers", "fault", f"of {summary.measured} answers: {kinds}{first}")


def _offered(summary: RateSummary) -> Finding:
    # The rate of n Poisson arrivals scatters by 1/√n; 5 % is what a steady client may lose besides.
    lowest = summary.offered * (1 - max(0.05, SIGMAS / math.sqrt(max(summary.measured, 1))))
    sentence = (
        f"{summary.achieved:.2f} req/s sent for {summary.offered:g} offered, "
        f"client late by {summary.client_lag_p90_ms:.1f} ms (p90)"
    )
    return _finding("offered-rate", "ok" if summary.achieved >= lowest else "fault", sentence)


def _samples(scenario: Scenario, summary: RateSummary) -> Finding:
    short: list[str] = []
    for slo in scenario.slo:
        needed = samples_needed({"p50": 0.5, "p90": 0.9, "p99": 0.99}.get(slo.statistic, 0.5))
        if summary.latency(slo.metric).count < needed:
            short.append(f"{slo.statistic} of {slo.metric.upper()} needs {needed}")
    if short:
        return _finding("samples", "fault", f"{summary.good} complete answers are too few: {', '.join(short)}")
    return _finding("samples", "ok", f"{summary.good} complete answers support every statistic of the SLO")


def _warmup(scenario: Scenario, summary: RateSummary) -> Finding:
    mean_s = (summary.e2e.mean or 0.0) / 1000
    sentence = f"{summary.warmup_requests} warm-up requests ({scenario.warmup_s:g} s), mean E2E {mean_s:.2f} s"
    return _finding("warm-up", "ok" if scenario.warmup_s >= mean_s else "fault", sentence)


def _queue(measured: Sequence[Request]) -> Finding:
    values = [r.e2e_ms for r in measured if r.fault() is None and r.e2e_ms is not None]
    third = len(values) // 3
    if third < 2:
        return _finding("queue", "fault", "too few complete answers to see whether a queue grows")
    early, late = np.asarray(values[:third]), np.asarray(values[-third:])
    rise = float(late.mean() / early.mean() - 1)
    error = math.sqrt((float(early.var(ddof=1)) + float(late.var(ddof=1))) / third)
    grows = rise > GROWTH and float(late.mean() - early.mean()) > SIGMAS * error
    sentence = f"mean E2E {early.mean():.0f} ms in the first third of the window, {late.mean():.0f} ms in the last"
    return _finding("queue", "fault" if grows else "ok", ("the queue grows: " if grows else "") + sentence)


def _prompts(summary: RateSummary, requests: Sequence[Request], alike: int) -> Finding:
    repeated = len(requests) - len({request.prompt_id for request in requests})
    if repeated or alike > ALIKE * summary.requests_sent:
        return _finding("prompts", "fault", f"{repeated} prompts sent twice, {alike} go on like another one")
    return _finding(
        "prompts",
        "ok",
        f"{summary.requests_sent} prompts, all different where they should be ({alike} go on like another one)",
    )


def _kv(proof: KvProof) -> list[Finding]:
    """The verdict, and each of its causes that no other check names already."""
    if proof.verdict == "not applicable":
        return [_finding("kv", "ok", "aggregated: no KV is moved")]
    if proof.verdict == "proven":
        sentence = f"{proof.counted_bytes:,} KV bytes moved, exactly what {proof.requests} prompts need"
        return [_finding("kv", "ok", sentence)]
    names = list(dict.fromkeys(cause.name for cause in proof.causes)) or proof.reasons
    own = [cause for cause in proof.causes if cause.id not in ("foreign-traffic", "replicas")]
    return [
        _finding("kv", "fault", "KV proof failed: " + "; ".join(names)),
        *(_finding(cause.id, "fault", cause.sentence) for cause in own),
    ]


def _path(proof: KvProof) -> list[Finding]:
    """Over what the KV went, and what the RDMA gate said before; nothing where no KV moves or none was looked for."""
    if proof.transport is None:
        return []
    path = proof.transport
    said = {"rdma": "KV over RDMA", "tcp": "KV over TCP", "unknown": "the path of the KV is not known"}[path.label]
    found = [_finding("transport", path.outcome, f"{said}: {path.reason}")]
    if path.gate:
        found.append(_finding("rdma-gate", "ok" if path.gate.gate == "passed" else "note", path.gate.sentence))
    even = evenness(path.nics, proof.counted_bytes or 0) if path.nics else None
    if even:
        found.append(_finding("nics", "ok" if even.even else "note", even.sentence))
    return found


def _foreign(proof: KvProof) -> Finding:
    if proof.foreign_requests:
        sentence = f"the service answered {proof.foreign_requests} requests that this run did not send"
        return _finding("foreign-traffic", "fault", sentence)
    if proof.foreign_requests is None:
        return _finding(
            "foreign-traffic", "note", "the service reports no request count: foreign traffic cannot be seen"
        )
    return _finding("foreign-traffic", "ok", "the service answered no requests but ours")


def _replicas(proof: KvProof) -> Finding:
    if proof.replica_changes:
        return _finding("replicas", "fault", "; ".join(proof.replica_changes))
    if proof.foreign_requests is None:
        return _finding("replicas", "note", "the service reports no request count: a restart cannot be seen")
    return _finding("replicas", "ok", "no sign of a replica that was restarted or added during the rate")


def _finding(name: str, outcome: Literal["ok", "note", "fault"], sentence: str) -> Finding:
    return Finding(id=name, outcome=outcome, sentence=sentence)
