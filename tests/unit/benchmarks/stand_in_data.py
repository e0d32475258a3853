"""Plain data that tests feed the benchmark: a stack's output, a scenario, requests."""

from __future__ import annotations

import random
from typing import Any

from stand_in_server import MODEL

from benchmarks.records import Request

BLOCK, BYTES_PER_TOKEN = 16, 1024


def target_data(url: str, **changes: Any) -> dict[str, Any]:
    """The `benchmark` output of a pd stack at `url`."""
    deployment = {
        "kind": "pd",
        "topology": "1p1d",
        "platform": "cpu",
        "prefill": 1,
        "decode": 1,
        "aggregated": 0,
        "gpus": 0,
        "dummy_weights": True,
        "engine": {"prefill": {"block_size": BLOCK}, "decode": {"block_size": BLOCK}},
    }
    data: dict[str, Any] = {
        "stack": "stand-in",
        "url": url,
        "model": MODEL,
        "tokenizer": "builtin",
        "scenario": "quick",
        "metrics_urls": [f"{url}/metrics"],
        "deployment": deployment,
        "kv": {"block_size": BLOCK, "bytes_per_token": BYTES_PER_TOKEN},
        "versions": {"stand-in": "1"},
        "commit": "",
    }
    return data | changes


def aggregated(url: str, **changes: Any) -> dict[str, Any]:
    """The `benchmark` output of an aggregated stack at `url`."""
    data = target_data(url, kv=None, **changes)
    data["deployment"] |= {"kind": "aggregated", "prefill": 0, "decode": 0, "aggregated": 2, "topology": "agg-2"}
    return data


def scenario_data(**changes: Any) -> dict[str, Any]:
    """A scenario as plain data."""
    data: dict[str, Any] = {
        "name": "quick",
        "description": "for tests",
        "isl": 64,
        "osl": 8,
        "prefix_hit_rate": 0,
        "turns": 1,
        "slo": [{"metric": "ttft", "statistic": "p90", "bound": 2, "unit": "s"}],
        "rates": [20],
        "warmup_s": 0.5,
        "window_s": 1.5,
        "min_requests": 30,
        "arrivals": "poisson",
        "request_timeout_s": 20,
        "seed": "per-run",
    }
    return data | changes


def poisson(rate: float, count: int) -> list[float]:
    """Times of Poisson arrivals, the same ones each time, stretched so that the last comes after (count - 1) / rate."""
    draw, times = random.Random(1), [0.0]
    for _ in range(count - 1):
        times.append(times[-1] + draw.expovariate(rate))
    return [time * (count - 1) / rate / times[-1] for time in times]


def request(number: int = 0, **changes: Any) -> Request:
    """A complete answer of 8 tokens, sent `number` seconds after the first; keyword arguments replace values.

    A first token that comes would come after the whole answer takes its end along.
    """
    values: dict[str, Any] = {
        "sent_s": 100.0 + number,
        "due_s": 100.0 + number,
        "end_s": 100.0 + number + 0.080,
        "prompt_id": f"prompt-{number}",
        "prompt_tokens": 64,
        "output_tokens": 8,
        "ttft_ms": 10.0,
        "e2e_ms": 80.0,
        "gaps_ms": (10.0,) * 7,
        "error": None,
        "asked": 8,
        "planned_prompt": 64,
    }
    values |= changes
    if values["ttft_ms"] and values["e2e_ms"]:
        values["e2e_ms"] = max(values["e2e_ms"], values["ttft_ms"])
    return Request(**values)
