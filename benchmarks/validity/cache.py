"""Did the prefix cache hold what the scenario says that it holds, no more and no less?"""

from __future__ import annotations

from benchmarks.target import Target
from benchmarks.validity.finding import Verdict, fault, fault_if, kind, note, ok
from benchmarks.validity.seen import Seen

# Prompts that begin alike may be answered from the prefix cache; AIPerf draws them from one text, so that two of a
# thousand may start at the same place by chance.
ALIKE = 0.01
# Share of the prompt tokens by which hits may be off, besides what blocks and cold caches explain.
HITS = 0.05
# The largest block that vLLM's platforms here have, where a target does not say (serving/platforms.py).
LARGEST_BLOCK = 128


@kind("prompts")
def prompts(seen: Seen) -> Verdict | None:
    """A prompt was sent twice, or over 1 % of the prompts begin like another one. The seed then measures the prefix
    cache."""
    repeated = len(seen.requests) - len({request.prompt_id for request in seen.requests})
    evidence = {"repeated": repeated, "alike": seen.alike, "sent": seen.summary.requests_sent}
    if repeated or seen.alike > ALIKE * seen.summary.requests_sent:
        return fault(f"{repeated} prompts sent twice, {seen.alike} begin like another one", **evidence)
    return ok(f"{seen.summary.requests_sent} prompts, all different ({seen.alike} begin like another one)", **evidence)


@kind("prefix-hit-rate")
def prefix_hit_rate(seen: Seen) -> Verdict | None:
    """The engines found more or less of the prompts in their prefix caches than the scenario says, by over 5 % of the
    prompt tokens besides what whole blocks and the first prompts to a cold engine explain."""
    planned = seen.planned_hit_rate if seen.planned_hit_rate is not None else seen.scenario.prefix_hit_rate
    if seen.prefix is None:
        return (
            None if planned == 0 else note("the service reports no prompt tokens: the prefix hit rate cannot be seen")
        )
    measured, requests = seen.prefix.rate, max(len(seen.requests), 1)
    block = _block_size(seen.target) if seen.target else LARGEST_BLOCK
    # A hit ends with a whole block; each engine computes the prefix once, and may do so for a few prompts at a time.
    partial = block / max(seen.prefix.tokens / requests, 1) if planned else 0.0
    cold = min(1.0, 2 * seen.prefix.engines / requests)
    lowest = max(0.0, (planned - partial) * (1 - cold) - HITS)
    wrong = "warmer" if measured > planned + HITS else "colder" if measured < lowest else ""
    sentence = f"{100 * measured:.1f} % of the prompt tokens were in the prefix cache, {100 * planned:.0f} % planned"
    return fault_if(
        wrong,
        f"the cache is {wrong} than the scenario says: {sentence}" if wrong else sentence,
        measured=measured,
        planned=planned,
        lowest=lowest,
        highest=planned + HITS,
    )


def _block_size(target: Target) -> int:
    sizes = [int(arguments.get("block_size") or 0) for arguments in target.deployment.engine.values()]
    return max(sizes, default=0) or (target.kv.block_size if target.kv else LARGEST_BLOCK)
