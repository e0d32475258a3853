"""Did tokens reach the client as they were decoded?"""

from __future__ import annotations

from benchmarks.validity.finding import Verdict, fault, fault_if, kind, note, ok
from benchmarks.validity.seen import Seen

# Tokens a chunk: a tokenizer whose tokens are parts of a character sends some chunks later with the next one (1.14 on
# the rehearsal model).
PER_CHUNK = 1.5
# A gap below this share of the mean gap is none: the chunk was there already.
NO_GAP = 0.05
BUNCHED = 0.25
# Mean E2E at the client over what the engines say at most.
DELIVERY = 1.5
DELIVERY_S = 0.5


@kind("stream-batching")
def batching(seen: Seen) -> Verdict | None:
    """The stream was batched on its way: chunks carry several tokens, or several chunks arrive at once. ITL is then the
    time between batches; a note, and a fault where the SLO bounds ITL."""
    answers = [r for r in seen.good if r.gaps_ms and r.output_tokens]
    if not answers:
        return None
    chunks = sum(len(r.gaps_ms) + 1 for r in answers)
    per_chunk = sum(r.output_tokens or 0 for r in answers) / chunks
    gaps = [gap for r in answers for gap in r.gaps_ms]
    mean = sum(gaps) / len(gaps)
    at_once = sum(1 for gap in gaps if gap < NO_GAP * mean) / len(gaps)
    evidence = {"tokens_per_chunk": per_chunk, "at_once": at_once, "chunks": chunks}
    sentence = (
        f"{per_chunk:.2f} tokens a chunk, {100 * at_once:.0f} % of the chunks arrived together with the one before"
    )
    if per_chunk <= PER_CHUNK and at_once <= BUNCHED:
        return ok(sentence, **evidence)
    bounded = any(slo.metric == "itl" for slo in seen.bounds)
    sentence = f"the stream is batched: {sentence}; read TPOT, not ITL, and TTFT may be a batch late"
    return fault(sentence, **evidence) if bounded else note(sentence, **evidence)


@kind("delivery", overload=True)
def delivery(seen: Seen) -> Verdict | None:
    """The engines had finished long before the client had its last token, by their own histogram of request times.
    Delivery through the proxies is the limit, not decoding, and the result says nothing about the engines."""
    times = [r.e2e_ms / 1000 for r in seen.requests if r.e2e_ms is not None and r.fault() is None]
    if seen.engine_s is None or not times:
        return None
    mean = sum(times) / len(times)
    return fault_if(
        mean > DELIVERY * seen.engine_s + DELIVERY_S,
        f"a request took {mean:.2f} s at the client and at most {seen.engine_s:.2f} s in engines, on average",
        client_s=mean,
        engine_s=seen.engine_s,
    )
