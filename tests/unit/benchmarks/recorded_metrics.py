"""Metrics of a real run, and of runs as they would be told, from recorded/ (see its README)."""

from __future__ import annotations

from pathlib import Path

from stand_in_data import request, target_data

from benchmarks.evidence import KvProof, prove_kv
from benchmarks.metrics import Counters, parse
from benchmarks.target import Target

RECORDED = Path(__file__).parent / "recorded"
SENT = [256] * 36
SHORT_AND_LONG = [1, 50, 127, 128, 129, 256, 300, 700]


def target() -> Target:
    """The stack of the recording."""
    data = target_data("http://127.0.0.1:9", kv={"block_size": 128, "bytes_per_token": 1024})
    data["deployment"]["engine"] = {"prefill": {"block_size": 128}, "decode": {"block_size": 128}}
    return Target.model_validate(data)


def recorded(name: str) -> Counters:
    """The increase from the recording's beginning to `name`."""
    before, after = ((RECORDED / file).read_text(encoding="utf-8") for file in ("before.prom", f"{name}.prom"))
    return parse(after).since(parse(before))


def proof_of(name: str, lengths: list[int] = SENT) -> KvProof:
    """What the proof says of a recording in which prompts of `lengths` tokens were sent."""
    sent = [request(number, prompt_tokens=length) for number, length in enumerate(lengths)]
    return prove_kv(target(), sent, recorded(name))
