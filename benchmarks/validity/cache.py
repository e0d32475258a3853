"""Did the prefix cache hold what the scenario says that it holds, no more and no less?"""

from __future__ import annotations

import math

from benchmarks.target import Target
from benchmarks.validity.finding import Verdict, fault, fault_if, kind, note, ok
from benchmarks.validity.seen import Seen

# Prompts that go on alike may be answered from the prefix cache. By chance none of ours do.
ALIKE = 0.01
# Share of the prompt tokens by which hits may be off, besides what blocks and cold caches explain.
HITS = 0.05
# The largest block that vLLM's platforms here have, where a target does not say (serving/platforms.py).
LARGEST_BLOCK = 128


@kind("prompts")
def prompts(seen: Seen) -> Verdict | None:
    """A prompt was sent twice, or over 1 % of the prompts go on like another one after what they are meant to share.
    The seed then measures the prefix cache."""
    repeated = len(seen.requests) - len({request.prompt_id for request in seen.requests})
    evidence = {"repeated": repeated, "alike": seen.alike, "sent": seen.summary.requests_sent}
    if repeated or seen.alike > ALIKE * seen.summary.requests_sent:
        return fault(f"{repeated} prompts sent twice, {seen.alike} go on like another one", **evidence)
    return ok(f"{seen.summary.requests_sent} prompts, all different ({seen.alike} go on like another one)", **evidence)


@kind("prefix-hit-rate")
def prefix_hit_rate(seen: Seen) -> Verdict | None:
    """The engines found more or less of the prompts in their prefix caches than the scenario says, by over 5 % of the
    prompt tokens besides what whole blocks and the first prompts to a cold engine explain."""
    lowest, highest = seen.planned_hit_rate or _of_scenario(seen)
    if seen.hit_rate is None:
        return note("the service reports no prompt tokens: the prefix hit rate cannot be seen") if highest else None
    wrong = "warmer" if seen.hit_rate > highest + HITS else "colder" if seen.hit_rate < lowest - HITS else ""
    sentence = (
        f"{100 * seen.hit_rate:.1f} % of the prompt tokens were in the prefix cache, {_range(lowest, highest)} planned"
    )
    return fault_if(
        wrong,
        f"the cache is {wrong} than the scenario says: {sentence}" if wrong else sentence,
        measured=seen.hit_rate,
        planned_lowest=lowest,
        planned_highest=highest,
    )


def _of_scenario(seen: Seen) -> tuple[float, float]:
    """A hit ends with a whole block, and each engine computes the prefix once, or for two prompts at a time."""
    planned = seen.scenario.prefix_hit_rate
    if not planned:
        return 0.0, 0.0
    lengths = [request.prompt_tokens for request in seen.requests if request.prompt_tokens]
    tokens = sum(lengths) / len(lengths) if lengths else math.inf
    block, engines = (_block_size(seen.target), _engines(seen.target)) if seen.target else (LARGEST_BLOCK, 1)
    cold = min(1.0, 2 * engines / max(len(seen.requests), 1))
    return max(0.0, planned - block / tokens) * (1 - cold), planned


def _range(lowest: float, highest: float) -> str:
    ends = dict.fromkeys(f"{100 * end:.0f}" for end in (lowest, highest))
    return " to ".join(ends) + " %"


def _block_size(target: Target) -> int:
    sizes = [int(arguments.get("block_size") or 0) for arguments in target.deployment.engine.values()]
    return max(sizes, default=0) or (target.kv.block_size if target.kv else LARGEST_BLOCK)


def _engines(target: Target) -> int:
    """Engines that compute prompts."""
    return target.deployment.prefill or target.deployment.aggregated or 1
