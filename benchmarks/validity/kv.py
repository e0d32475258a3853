"""Did the KV cache move from prefill to decode: all of it, once, in time, and over RDMA?

The verdict, then each of its causes by name (benchmarks/causes.py finds them), then the path.
"""

from __future__ import annotations

from benchmarks.transport import evenness
from benchmarks.validity.finding import Verdict, fault, kind, ok
from benchmarks.validity.seen import Seen


@kind("kv")
def verdict(seen: Seen) -> Verdict | None:
    """The KV proof failed: the bytes that decode counted are not those of the prompts, for a reason named below."""
    proof = seen.proof
    if proof.verdict == "not applicable":
        return ok("aggregated: no KV is moved")
    evidence = {
        "counted_bytes": proof.counted_bytes,
        "expected_bytes": proof.expected_bytes,
        "requests": proof.requests,
    }
    if proof.verdict == "proven":
        return ok(
            f"{proof.counted_bytes or 0:,} KV bytes moved, exactly what {proof.requests} prompts need", **evidence
        )
    names = list(dict.fromkeys(cause.name for cause in proof.causes)) or proof.reasons
    return fault("KV proof failed: " + "; ".join(names), **evidence)


@kind("kv-missing")
def missing(seen: Seen) -> Verdict | None:
    """No KV moved at all."""
    return _cause(seen, "kv-missing")


@kind("kv-recomputed")
def recomputed(seen: Seen) -> Verdict | None:
    """Decode computed prompts itself instead of receiving their KV."""
    return _cause(seen, "kv-recomputed")


@kind("kv-expired")
def expired(seen: Seen) -> Verdict | None:
    """Prefill's lease on KV blocks ended before decode had read them: decode may have read another prompt's."""
    return _cause(seen, "kv-expired")


@kind("kv-failed-transfers")
def failed_transfers(seen: Seen) -> Verdict | None:
    """Reads that NIXL reported as failed."""
    return _cause(seen, "kv-failed-transfers")


@kind("kv-unnotified")
def unnotified(seen: Seen) -> Verdict | None:
    """Prefill was not told that its blocks are free again."""
    return _cause(seen, "kv-unnotified")


@kind("kv-transfers")
def transfers(seen: Seen) -> Verdict | None:
    """Fewer transfers than requests and ranks."""
    return _cause(seen, "kv-transfers")


@kind("kv-bytes")
def wrong_bytes(seen: Seen) -> Verdict | None:
    """Not the bytes that the prompts need."""
    return _cause(seen, "kv-bytes")


@kind("kv-block-size")
def block_size(seen: Seen) -> Verdict | None:
    """Prefill and decode have KV blocks of different sizes."""
    return _cause(seen, "kv-block-size")


@kind("kv-unreceived")
def unreceived(seen: Seen) -> Verdict | None:
    """KV was read, and no engine says that it received any."""
    return _cause(seen, "kv-unreceived")


@kind("kv-computed-unknown")
def computed_unknown(seen: Seen) -> Verdict | None:
    """Decode received KV, and does not tell what it computed beside it: nothing shows that it used what it received."""
    return _cause(seen, "kv-computed-unknown")


@kind("kv-unreadable")
def unreadable(seen: Seen) -> Verdict | None:
    """Counters that are NaN or infinite: nothing can be held against anything."""
    return _cause(seen, "kv-unreadable")


@kind("kv-uncounted")
def uncounted(seen: Seen) -> Verdict | None:
    """Answers without a token count: what their KV should be is not known."""
    return _cause(seen, "kv-uncounted")


@kind("transport")
def transport(seen: Seen) -> Verdict | None:
    """KV went over TCP where there is RDMA to use (a note on CPU, or where the path is not known). TCP costs up to 19
    times, by the reference post."""
    path = seen.proof.transport
    if path is None:
        return None
    said = {"rdma": "KV over RDMA", "tcp": "KV over TCP", "unknown": "the path of the KV is not known"}[path.label]
    return Verdict(path.outcome, f"{said}: {path.reason}")


@kind("rdma-gate")
def rdma_gate(seen: Seen) -> Verdict | None:
    """RDMA was not proven before serving: the gate warned, was off, or did not run on GPU nodes."""
    gate = seen.proof.transport.gate if seen.proof.transport else None
    if gate is None:
        return None
    return Verdict("ok" if gate.gate == "passed" else "note", gate.sentence)


@kind("nics")
def nics(seen: Seen) -> Verdict | None:
    """A node's emptiest RDMA NIC carried less than half of its fullest."""
    path = seen.proof.transport
    even = evenness(path.nics, seen.proof.counted_bytes or 0) if path and path.nics else None
    if even is None:
        return None
    return Verdict("ok" if even.even else "note", even.sentence, {"ratio": even.ratio})


def _cause(seen: Seen, name: str) -> Verdict | None:
    """What the proof says of one cause; several sentences where it names it several times."""
    said = [cause.sentence for cause in seen.proof.causes if cause.id == name]
    return fault("; ".join(said)) if said else None
