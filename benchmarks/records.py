"""AIPerf's per-request records (profile_export.jsonl, AIPerf 0.13), as values."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.workload import Planned, Workload

RECORDS_FILE = "profile_export.jsonl"
NS = 1e9
# What is read, and the unit that AIPerf 0.13 gives with it (metrics/types/, display_unit).
_UNITS = {
    "usage_prompt_tokens": "tokens",
    "usage_completion_tokens": "tokens",
    "time_to_first_token": "ms",
    "request_latency": "ms",
    "inter_chunk_latency": "ms",
}


@dataclass(frozen=True)
class Request:
    """One request. Times in seconds since the epoch, latencies in milliseconds, lengths in tokens as the server counts.

    A value the server or AIPerf did not give is None. `gaps_ms` are the times between streamed chunks. `asked` and
    `planned_prompt` are what the workload planned: output tokens asked for, and the length of the prompt.
    """

    sent_s: float
    due_s: float
    end_s: float
    prompt_id: str
    prompt_tokens: int | None
    output_tokens: int | None
    ttft_ms: float | None
    e2e_ms: float | None
    gaps_ms: tuple[float, ...]
    error: str | None
    asked: int
    planned_prompt: int | None = None

    def fault(self) -> str | None:
        """Why this is not a complete answer of as many tokens as asked for, in a few words; None when it is.

        AIPerf itself reports a stream that the server broke off with an error event as a success, only without token
        counts (seen), so a missing count is a failure here.
        """
        if self.error is not None:
            return "failed"
        if not self.output_tokens:
            return "broken off or empty" if self.output_tokens is None else "empty"
        if self.output_tokens < self.asked:
            return "shorter than asked"
        if self.output_tokens > self.asked:
            return "longer than asked"
        if self.ttft_ms is None or self.e2e_ms is None or self.prompt_tokens is None:
            return "without times or token counts"
        return "with impossible times" if self.impossible() else None

    def impossible(self) -> bool:
        """Whether its times are those of no request: ended before it was sent, or out of order."""
        if self.end_s < self.sent_s or min(self.gaps_ms, default=0.0) < 0:
            return True
        if self.ttft_ms is None or self.e2e_ms is None:
            return False
        return self.ttft_ms <= 0 or self.ttft_ms > self.e2e_ms

    @property
    def tpot_ms(self) -> float | None:
        """Time per output token after the first: (E2E − TTFT) / (output tokens − 1)."""
        if self.ttft_ms is None or self.e2e_ms is None or not self.output_tokens or self.output_tokens < 2:
            return None
        return (self.e2e_ms - self.ttft_ms) / (self.output_tokens - 1)


def read_records(path: Path, workload: Workload) -> list[Request]:
    """All requests of one AIPerf run, in the order they were sent, with what `workload` planned for each.

    Raises BenchmarkError when the file is missing, empty, cut off in the middle of a line, or of another workload, and
    when a value is no number or in another unit than AIPerf 0.13 writes.
    """
    planned = workload.by_id()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BenchmarkError(f"AIPerf left no records at {path}: {error.strerror}; see aiperf.log beside it") from None
    except UnicodeDecodeError:
        raise BenchmarkError(f"{path} is damaged: not UTF-8") from None
    requests: list[Request] = []
    for number, line in enumerate(lines, start=1):
        try:
            raw = json.loads(line)
            known = planned.get(str(raw["metadata"]["conversation_id"]))
            if known is None:
                raise BenchmarkError(f"{path}, line {number}: a request that was not planned; is it of another run?")
            requests.append(_request(raw, known))
        except _Unreadable as wrong:
            raise BenchmarkError(f"{path}, line {number}: {wrong}; not a record as AIPerf 0.13 writes it") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BenchmarkError(f"{path}, line {number}: not a record of AIPerf 0.13; is it cut off?") from None
    if not requests:
        raise BenchmarkError(f"AIPerf wrote no record to {path}; see aiperf.log beside it")
    return sorted(requests, key=lambda request: request.sent_s)


class _Unreadable(Exception):
    """A value that is not what it should be; the message says which."""


def _request(raw: dict[str, Any], planned: Planned) -> Request:
    meta, metrics, error = raw["metadata"], raw["metrics"], raw.get("error")
    message = "cancelled when the time for its answer ran out" if meta.get("was_cancelled") else None
    sent = _number(meta["request_start_ns"], "request_start_ns")
    return Request(
        sent_s=sent / NS,
        due_s=_number(meta.get("credit_issued_ns") or sent, "credit_issued_ns") / NS,
        end_s=_number(meta["request_end_ns"], "request_end_ns") / NS,
        prompt_id=planned.id,
        prompt_tokens=_tokens(metrics, "usage_prompt_tokens"),
        output_tokens=_tokens(metrics, "usage_completion_tokens"),
        ttft_ms=_single(metrics, "time_to_first_token"),
        e2e_ms=_single(metrics, "request_latency"),
        gaps_ms=tuple(_number(gap, "inter_chunk_latency") for gap in _value(metrics, "inter_chunk_latency") or ()),
        error=str(error["message"]) if error else message,
        asked=planned.osl,
        planned_prompt=planned.isl,
    )


def _tokens(metrics: dict[str, Any], name: str) -> int | None:
    value = _single(metrics, name)
    if value is not None and (value < 0 or value != int(value)):
        raise _Unreadable(f"{name} is {value:g}, no number of tokens")
    return None if value is None else int(value)


def _single(metrics: dict[str, Any], name: str) -> float | None:
    value = _value(metrics, name)
    return None if value is None else _number(value, name)


def _value(metrics: dict[str, Any], name: str) -> Any:
    if metrics.get(name) is None:
        return None
    if (unit := metrics[name].get("unit") or _UNITS[name]) != _UNITS[name]:
        raise _Unreadable(f"{name} is in {unit}, not in {_UNITS[name]}")
    return metrics[name]["value"]


def _number(value: Any, name: str) -> float:
    """JSON as Python reads it has NaN and Infinity, of which every mean is NaN and no comparison is true."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _Unreadable(f"{name} is {value!r}, no number")
    return value
