"""The report's table "How the KV moved": each piece of evidence of a rate, with its value, a verdict and the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.evidence import EXPIRED, FAILED_NOTIFICATIONS, FAILED_TRANSFERS, KvProof
from benchmarks.prompt_tokens import PromptTokens
from benchmarks.run_directory import RateResult
from benchmarks.transfer import Transfers, together
from benchmarks.transport import ADD_EXPORTERS, Transport, carried_by_rdma, evenness

Outcome = Literal["ok", "note", "fault"]


@dataclass(frozen=True)
class Evidence:
    """One piece. `verdict` is a word or two; `outcome` is how bad it is."""

    name: str
    value: str
    verdict: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class EvidenceRow:
    """One piece over those rates that have the same verdict for the same reason; `values` pairs rates with a value."""

    name: str
    values: list[tuple[str, str]]
    verdict: str
    outcome: Outcome
    reason: str


def rows(results: Sequence[RateResult], named: Callable[[Sequence[float]], str]) -> list[EvidenceRow]:
    """All evidence of a run's rates; `named` writes rates. Empty when the run is older than this evidence."""
    pieces = [(r.rate, piece) for r in results if r.kv.tokens for piece in evidence(r.kv, r.kv.tokens)]
    table: list[EvidenceRow] = []
    for name in dict.fromkeys(piece.name for _, piece in pieces):
        verdicts: dict[tuple[str, Outcome, str], dict[str, list[float]]] = {}
        for rate, piece in pieces:
            if piece.name == name:
                values = verdicts.setdefault((piece.verdict, piece.outcome, piece.reason), {})
                values.setdefault(piece.value, []).append(rate)
        for verdict, values in verdicts.items():
            table.append(EvidenceRow(name, [(named(rates), value) for value, rates in values.items()], *verdict))
    return table


def evidence(proof: KvProof, tokens: PromptTokens) -> list[Evidence]:
    """Everything that is known of one rate."""
    found = [
        _judged(
            proof,
            "KV bytes",
            f"{_number(proof.counted_bytes)} of {_number(proof.expected_bytes)}",
            "equal",
            "decode counted to the byte what the whole blocks of every prompt are",
            ("kv-missing", "kv-uncounted", "kv-block-size", "kv-bytes"),
        ),
        _judged(
            proof,
            "transfers",
            f"{_number(proof.counted_transfers)} of {_number(proof.expected_transfers)}",
            "complete",
            "one for each request and rank of decode",
            ("kv-missing", "kv-transfers", "foreign-traffic", "replicas"),
        ),
        _judged(
            proof,
            "decode's prompt tokens by source",
            f"{tokens.received:,} from prefill, {tokens.cached:,} from its own prefix cache, "
            f"{_number(tokens.computed)} computed",
            "received",
            "computed are prompt tokens less cached ones, and the last of each prompt is due; not from vLLM's "
            "prompt_tokens_by_source, which through Ray counts every source as received",
            ("kv-recomputed", "kv-computed-unknown", "kv-unreceived"),
        ),
        _failures(proof, FAILED_TRANSFERS, "kv-failed-transfers", "decode"),
        _failures(proof, FAILED_NOTIFICATIONS, "kv-unnotified", "decode"),
        _failures(proof, EXPIRED, "kv-expired", "prefill"),
        *_reads(proof.transfers),
        _by_vllm(proof.vllm_transfers, proof.counted_transfers),
        _peers(tokens, proof.prompt_tokens or 0),
    ]
    return [*found, *(_path(proof.transport, proof.transfers) if proof.transport else [])]


def _judged(proof: KvProof, name: str, value: str, verdict: str, reason: str, causes: Sequence[str]) -> Evidence:
    """A piece that the proof has judged: `verdict` and `reason` hold unless it found one of `causes`."""
    against = [cause for cause in proof.causes if cause.id in causes]
    if against:
        names = "; ".join(dict.fromkeys(cause.name for cause in against))
        return Evidence(name, value, names, "fault", "; ".join(cause.sentence for cause in against))
    return Evidence(name, value, verdict, "ok", reason)


def _failures(proof: KvProof, name: str, cause: str, side: str) -> Evidence:
    return _judged(proof, name, str(proof.failures.get(name, 0)), "none", f"vLLM's own counter on {side}", (cause,))


def _reads(parts: Sequence[Transfers]) -> list[Evidence]:
    """What the reads were; nobody says how much is too much, so these are counted and not judged."""
    every = together(parts)
    if every is None:
        return []
    each = [
        (
            "descriptors",
            every.mean_descriptors,
            "{:,.1f} a transfer",
            "one for each block and layer, or for K and V each",
        ),
        ("post time", every.mean_post_ms, "{:,.2f} ms a transfer", "decode's step waits for it"),
        (
            "transfer time",
            every.mean_transfer_ms,
            "{:,.2f} ms a transfer",
            "from posting to NIXL's word that it is done",
        ),
        (
            "speed",
            every.mb_per_s,
            "{:,.0f} MB/s",
            "bytes over the sum of transfer times: of one transfer, not of a link",
        ),
    ]
    found = [
        Evidence(name, shape.format(value), "counted", "ok", reason)
        if value is not None
        else Evidence(name, "–", "not measured", "note", "a decode replica does not export it")
        for name, value, shape, reason in each
    ]
    lines = [
        f"{part.replica or '?'}{f' on {part.node}' if part.node else ''}: {part.transfers:,} transfers, "
        f"{part.bytes:,} bytes, post {_ms(part.mean_post_ms)}, transfer {_ms(part.mean_transfer_ms)}"
        for part in parts
    ]
    return [*found, Evidence("each decode replica", "; ".join(lines), "counted", "ok", "this repository's counters")]


def _by_vllm(theirs: int | None, ours: int | None) -> Evidence:
    name, reason = (
        "transfers as vLLM counts them",
        "vLLM's histogram on decode, whose count is exact, against our counter",
    )
    if theirs is None:
        return Evidence(name, "–", "not measured", "note", "the engines do not export it")
    return Evidence(name, f"{theirs:,}", *(("equal", "ok") if theirs == ours else ("differs", "note")), reason)


def _peers(tokens: PromptTokens, sent: int) -> Evidence:
    value = "; ".join(f"{replica}: {count:,} prompt tokens" for replica, count in sorted(tokens.prefill.items())) or "–"
    if not tokens.prefill:
        reason = "no engine received KV, so nothing tells prefill from decode"
        return Evidence("by prefill replica", value, "not known", "note", reason)
    if sum(tokens.prefill.values()) != sent:
        reason = (
            f"not the {sent:,} that were sent: a decode replica that received nothing is among them, or other traffic"
        )
        return Evidence("by prefill replica", value, "does not add up", "note", reason)
    if len(tokens.prefill) == 1:
        return Evidence("by prefill replica", value, "counted", "ok", "the only one, so every byte came from it")
    reason = "vLLM 0.18 drops the peer of a transfer; what each prefill replica had to hand over are its prompt tokens"
    return Evidence("by prefill replica", value, "bytes not measured", "note", reason)


def _path(path: Transport, reads: Sequence[Transfers]) -> list[Evidence]:
    label = {"rdma": "RDMA", "tcp": "TCP", "unknown": "–"}[path.label]
    verdict = {"ok": "shown", "note": "no RDMA" if path.label == "tcp" else "not known", "fault": "not RDMA"}
    found = [Evidence("path", label, verdict[path.outcome], path.outcome, path.reason)]
    if path.gate:
        passed = path.gate.gate == "passed"
        verdict, outcome = ("passed", "ok") if passed else ("not proven", "note")
        found.append(Evidence("RDMA gate", path.gate.gate, verdict, outcome, path.gate.sentence))
    return [*found, *_nics(path, reads)]


def _nics(path: Transport, reads: Sequence[Transfers]) -> list[Evidence]:
    nics = path.nics
    if nics is None or nics.problem:
        if nics is None and path.gate is None:
            return [Evidence("NIC counters", "–", "not applicable", "ok", "this platform has no RDMA NIC to count at")]
        reason = nics.problem if nics and nics.problem else f"no node-exporter to ask: {ADD_EXPORTERS}"
        return [Evidence("NIC counters", "–", "not measured", "note", reason)]
    counted = sum(part.bytes for part in reads)
    value = f"{nics.of([part.node for part in reads]).rdma_received:,} RDMA bytes for {counted:,} of KV"
    verdict, outcome = ("enough", "ok") if carried_by_rdma(reads, nics) else ("too few", "note")
    reason = "received over the RDMA NICs of the nodes that read KV; headers come on top of it"
    found = [Evidence("NIC bytes", value, verdict, outcome, reason)]
    share = nics.rdma_share
    if share is None:
        reason = "needs node-exporter's ethtool collector on every node, and RDMA bytes"
        found.append(Evidence("RDMA share", "–", "not measured", "note", reason))
    else:
        value = f"{100 * share:.1f} % RDMA, {100 * (1 - share):.1f} % TCP and other kernel traffic"
        found.append(Evidence("RDMA share", value, "counted", "ok", "of the bytes that the RDMA NICs received"))
    even = evenness(nics, counted)
    if even is None:
        found.append(Evidence("evenness", "–", "not measured", "note", "no node with several RDMA NICs carried KV"))
    else:
        verdict, outcome = ("even", "ok") if even.even else ("uneven", "note")
        found.append(Evidence("evenness", f"{even.ratio:.2f}", verdict, outcome, even.sentence))
    return found


def _number(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"


def _ms(value: float | None) -> str:
    return "not exported" if value is None else f"{value:,.2f} ms"
