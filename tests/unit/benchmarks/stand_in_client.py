"""Sends a few requests to a stand-in and returns them as the records the benchmark would read."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import requests
from stand_in_server import MODEL

from benchmarks.records import Request

OSL = 4


def ask(url: str, lengths: Sequence[int]) -> list[Request]:
    """One request for each prompt length (in tokens, which are bytes here), one after another."""
    return [_ask_one(url, number, length) for number, length in enumerate(lengths)]


def _ask_one(url: str, number: int, length: int) -> Request:
    body = {"model": MODEL, "prompt": f"{number:04d}".ljust(length, "x")[:length], "max_tokens": OSL, "stream": True}
    start = time.time()
    usage: dict[str, Any] = {}
    with requests.post(f"{url}/v1/completions", json=body, stream=True, timeout=10) as answer:
        for line in answer.iter_lines():
            if line.startswith(b"data: {"):
                usage = json.loads(line[6:]).get("usage") or usage
    end = time.time()
    return Request(
        sent_s=start,
        due_s=start,
        end_s=end,
        prompt_id=str(number),
        prompt_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        ttft_ms=1.0,
        e2e_ms=(end - start) * 1000,
        gaps_ms=(),
        error=None,
        asked=OSL,
        planned_prompt=length,
    )
