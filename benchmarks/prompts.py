"""Do the prompts of a run differ, where they are meant to, so much that no prefix cache can answer them?"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.workload import Workload

# vLLM's prefix cache works on whole KV blocks, of at least 16 tokens in usual set-ups. Prompts that differ within as
# many tokens after what they are meant to share, share nothing more.
HEAD_TOKENS = 16


def count_alike(sent: Path, workload: Workload) -> int:
    """How many prompts go on like another one after what the workload has them share with earlier prompts.

    `sent` is the file that AIPerf took the prompts from (benchmarks/prompt_text.py). Raises BenchmarkError when it
    cannot be read or has prompts that were not planned.
    """
    planned = workload.by_id()
    heads: Counter[str] = Counter()
    try:
        with sent.open(encoding="utf-8") as file:
            for line in file:
                one = json.loads(line)
                if one["session_id"] not in planned:
                    raise BenchmarkError(f"{sent} has a prompt that was not planned: {one['session_id']}")
                heads[_head(one["text_input"], planned[one["session_id"]].shared)] += 1
    except (OSError, json.JSONDecodeError, KeyError, TypeError):
        raise BenchmarkError(f"cannot read the prompts that were sent from {sent}; is the file damaged?") from None
    return sum(count for count in heads.values() if count > 1)


def _head(prompt: str, after: int) -> str:
    """The first tokens after some number of them: words with a space before each, or single letters."""
    tokens = prompt.split(" ")[1:] if prompt.startswith(" ") else list(prompt)
    return " ".join(tokens[after : after + HEAD_TOKENS])
