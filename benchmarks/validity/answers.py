"""Was every request answered, whole and of the length that was asked for?"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.records import Request
from benchmarks.validity.finding import Verdict, fault, kind, note, ok
from benchmarks.validity.seen import Seen

# A prompt is off when its tokens differ by more than this share: a tokenizer may join tokens where parts of a prompt
# meet, or add one at the beginning.
LENGTH = 0.02
LENGTH_TOKENS = 2
# So many prompts of a rate may be off by chance.
OFF = 0.01
# What AIPerf 0.13 says of an answer that carried no token at all (common/models/record_models.py).
_NO_CONTENT = ("Invalid inference result", "InvalidInferenceResult", "no content")
# aiohttp's, below AIPerf.
_NO_SERVICE = (
    "cannot connect to host",
    "connect call failed",
    "server disconnected",
    "connection reset",
    "broken pipe",
)
_TIMEOUT = ("timeout", "timed out", "time for its answer ran out")


@kind("unreachable")
def unreachable(seen: Seen) -> Verdict | None:
    """Requests that found no service, or whose connection broke: it died, was restarted, or the network did. That is no
    sign of too much load, and what was measured beside it is of a service that came and went."""
    first = next((r.error for r in seen.requests if _unreachable(r)), None)
    return _counted(seen, _unreachable, "found no service", f"; first error: {first}")


@kind("failed-requests", overload=True)
def failed(seen: Seen) -> Verdict | None:
    """Requests that were refused, failed, or ran out of time. Latencies of the others are those of a service that
    gives up on some."""
    late = sum(1 for r in seen.measured if _failed(r) and _says(r, _TIMEOUT))
    first = next((r.error for r in seen.requests if _failed(r)), None)
    return _counted(seen, _failed, "failed", f", {late} of them timed out; first error: {first}")


@kind("broken-streams")
def broken(seen: Seen) -> Verdict | None:
    """An error inside a stream that began with HTTP 200. Load generators count it as a success; it is told by the
    missing token count."""
    return _counted(
        seen,
        lambda r: r.error is None and r.output_tokens is None,
        "were broken off after HTTP 200",
        ": no token count",
    )


@kind("empty-answers")
def empty(seen: Seen) -> Verdict | None:
    """Answers without a token. They are fast, and lower every latency."""
    return _counted(seen, _empty, "are empty", "")


@kind("short-answers")
def short(seen: Seen) -> Verdict | None:
    """Answers with fewer tokens than were asked for. Each one is less work than the scenario says."""
    lengths = [r.output_tokens or 0 for r in seen.requests if _short(r)]
    return _counted(seen, _short, "are shorter than asked", f": the shortest has {min(lengths, default=0)} tokens")


@kind("long-answers")
def long(seen: Seen) -> Verdict | None:
    """Answers with more tokens than were asked for, or counted as more. Each one is other work than the scenario says,
    and a count that is too high makes TPOT too low."""
    lengths = [r.output_tokens or 0 for r in seen.requests if _long(r)]
    return _counted(seen, _long, "are longer than asked", f": the longest has {max(lengths, default=0)} tokens")


@kind("times")
def times(seen: Seen) -> Verdict:
    """Times that no request has: an end before its beginning, a first token before the request was sent or after the
    last, or at the very moment of sending. A broken clock, or another unit; such answers are in no latency."""
    return _counted(seen, lambda r: r.error is None and r.impossible(), "have times that no request can have", "")


@kind("input-length")
def input_length(seen: Seen) -> Verdict | None:
    """Prompts that the server counts longer or shorter than planned, by over 2 % (and 2 tokens). Another tokenizer, a
    truncated prompt or a chat template makes another workload."""
    known = [(r.prompt_tokens, planned) for r in seen.measured if r.prompt_tokens and (planned := r.planned_prompt)]
    if not known:
        return None
    off = [(got, planned) for got, planned in known if abs(got - planned) > max(LENGTH_TOKENS, LENGTH * planned)]
    got, planned = (sum(values) / len(known) for values in zip(*known, strict=True))
    evidence = {"off": len(off), "known": len(known), "mean_tokens": got, "mean_planned": planned}
    sentence = f"prompts have {got:.1f} tokens on average, {planned:.1f} planned"
    if not off:
        return ok(sentence, **evidence)
    worst = max(off, key=lambda pair: abs(pair[0] - pair[1]))
    sentence += f"; {len(off)} of {len(known)} are off, the worst has {worst[0]} for {worst[1]}"
    return fault(sentence, **evidence) if len(off) > OFF * len(known) else note(sentence, **evidence)


def _counted(seen: Seen, wrong: Callable[[Request], bool], said: str, more: str) -> Verdict:
    """A fault where the window has any, a note where only the warm-up has."""
    before, within = seen.count(wrong)
    evidence = {"in_window": within, "in_warmup": before, "measured": len(seen.measured)}
    if within:
        return fault(f"{within} of {len(seen.measured)} answers {said}{more}", **evidence)
    if before:
        return note(f"{before} of {len(seen.warmup)} answers of the warm-up {said}{more}", **evidence)
    return ok(f"none of {len(seen.measured)} answers {said}", **evidence)


def _failed(request: Request) -> bool:
    return request.error is not None and not _empty(request) and not _unreachable(request)


def _unreachable(request: Request) -> bool:
    return _says(request, _NO_SERVICE)


def _empty(request: Request) -> bool:
    return (request.error is None and request.output_tokens == 0) or _says(request, _NO_CONTENT)


def _short(request: Request) -> bool:
    return request.error is None and 0 < (request.output_tokens or 0) < request.asked


def _long(request: Request) -> bool:
    return request.error is None and (request.output_tokens or 0) > request.asked


def _says(request: Request, words: tuple[str, ...]) -> bool:
    said = (request.error or "").lower()
    return any(word.lower() in said for word in words)
