"""A client of a simulated server: sends one request, and tells what came back."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import requests

from tools.simulated_server.misbehaviour import Misbehaviour
from tools.simulated_server.model import Arrangement, Speed
from tools.simulated_server.settings import Settings

# Steps of a millisecond: tests wait for tens of them.
FAST = Speed(base=0.001, per_sequence=0.0, per_prompt_token=0.000001)
BLOCK = 16
AGGREGATED = Arrangement(FAST, decode=1, block_size=BLOCK, cache_tokens=4096)
PD = Arrangement(FAST, decode=1, prefill=1, transfer_latency=0.002, block_size=BLOCK, cache_tokens=4096)


def settings(arrangement: Arrangement = AGGREGATED, **misbehaviour: Any) -> Settings:
    """Of a fast server that does these things wrong."""
    return Settings(arrangement, misbehaviour=Misbehaviour(**misbehaviour))


@dataclass
class Got:
    """What a client got. texts: of the events with one; times: when each came, in seconds since it asked."""

    status: int
    texts: list[str] = field(default_factory=list[str])
    times: list[float] = field(default_factory=list[float])
    reasons: list[str] = field(default_factory=list[str])
    usage: dict[str, int] | None = None
    error: str | None = None
    done: bool = False
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def stream(url: str, prompt: str = "x" * 64, tokens: int = 8, timeout: float = 10, **more: Any) -> Got:
    """One streamed completion that asks for its token counts."""
    body = {"prompt": prompt, "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True}, **more}
    start = time.monotonic()
    with requests.post(f"{url}/v1/completions", json=body, stream=True, timeout=timeout) as answer:
        got = Got(answer.status_code)
        if answer.status_code != 200:
            got.error = str(answer.json()["error"]["message"])
            return got
        for line in answer.iter_lines(chunk_size=65536):
            if line == b"data: [DONE]":
                got.done = True
            elif line:
                _note(got, json.loads(line.removeprefix(b"data: ")), time.monotonic() - start)
    return got


def _note(got: Got, event: dict[str, Any], at: float) -> None:
    got.events.append(event)
    if "error" in event:
        got.error = str(event["error"]["message"])
    for choice in event.get("choices", ()):
        got.texts.append(choice["text"])
        got.times.append(at)
        if choice["finish_reason"]:
            got.reasons.append(choice["finish_reason"])
    got.usage = event.get("usage") or got.usage
