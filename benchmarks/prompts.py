"""Do the prompts of a run differ enough that no prefix cache can answer them?"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from benchmarks.errors import BenchmarkError

# vLLM's prefix cache works on whole KV blocks from the start; 16 tokens, its smallest usual block, are about this many
# characters of English. Prompts that differ within them share nothing.
HEAD_CHARACTERS = 64


def count_alike(inputs: Path, prefix_hit_rate: float) -> int:
    """How many prompts begin, after the shared prefix, like another one.

    `inputs` is AIPerf's inputs.json. Where the shared prefix ends is not known in characters, so it is taken as what
    all prompts have in common. Raises BenchmarkError when the file cannot be read.
    """
    try:
        sessions = json.loads(inputs.read_text(encoding="utf-8"))["data"]
        prompts = [payload["prompt"] for session in sessions for payload in session["payloads"]]
    except (OSError, json.JSONDecodeError, KeyError, TypeError):
        raise BenchmarkError(f"cannot read the prompts AIPerf sent from {inputs}; see aiperf.log beside it") from None
    shared = _common_prefix(prompts) if prefix_hit_rate > 0 else 0
    heads = Counter(prompt[shared : shared + HEAD_CHARACTERS] for prompt in prompts)
    return sum(count for count in heads.values() if count > 1)


def _common_prefix(prompts: list[str]) -> int:
    if not prompts:
        return 0
    low, high = min(prompts), max(prompts)
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
