"""Wakes a service before it is measured.

The first requests to a fresh deployment pay for what no later one pays: NIXL handshakes between prefill and decode
replicas, compilation, cold caches. Seen on the CPU stack: the first answers took 50 s, later ones 0.4 s, and a
measurement's own warm-up of seconds cannot cover that.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import requests
from pydantic import BaseModel

from benchmarks.errors import BenchmarkError
from benchmarks.http import direct
from benchmarks.scenario import Scenario
from benchmarks.target import Target

# Awake: the last AGREEING answers took no more than SPREAD times the shortest of them.
AGREEING = 3
SPREAD = 1.5
MOST = 40
# A word of five letters is at most this many tokens (one per byte, with the space before it).
TOKENS_PER_WORD = 6
# Output tokens of a waking request at most: enough to decode for a while, without waiting out answers of thousands.
MOST_TOKENS = 64


class Priming(BaseModel):
    """How waking went: seconds that each request took, in order, and whether they had become alike at the end."""

    seconds: list[float]
    awake: bool

    def whole_answer_s(self, scenario: Scenario) -> float:
        """Seconds that a request takes on the quiet service, at most: waking ones ask for MOST_TOKENS tokens."""
        longest = scenario.longest[1]
        return self.seconds[-1] * longest / min(longest, MOST_TOKENS)


def prime(target: Target, scenario: Scenario, say: Callable[[str], None]) -> Priming:
    """Send requests as long as the scenario's longest one after another until their times agree.

    At least twice as many are sent as there are pairs of a prefill and a decode replica, so that most pairs meet.
    Raises BenchmarkError when the service does not answer one.
    """
    layout = target.deployment
    fewest = max(AGREEING, 2 * layout.prefill * layout.decode, 2 * layout.aggregated)
    taken: list[float] = []
    while len(taken) < fewest or (not _agree(taken) and len(taken) < max(MOST, fewest)):
        last = f", the last took {taken[-1]:.1f} s" if taken else ""
        say(f"waking the service: request {len(taken) + 1} of at least {fewest}{last}")
        taken.append(_ask(target, scenario))
    return Priming(seconds=[round(seconds, 4) for seconds in taken], awake=_agree(taken))


def _agree(taken: list[float]) -> bool:
    recent = taken[-AGREEING:]
    return max(recent) <= SPREAD * min(recent)


def _ask(target: Target, scenario: Scenario) -> float:
    letters = "abcdefghijklmnopqrstuvwxyz"
    longest_prompt, longest_answer = scenario.longest
    words = max(1, longest_prompt // TOKENS_PER_WORD)
    # Random, so that no answer comes from the prefix cache; not reproducible, because nothing here is measured.
    prompt = " ".join("".join(random.choices(letters, k=5)) for _ in range(words))  # noqa: S311
    body = {"model": target.model, "prompt": prompt, "max_tokens": min(longest_answer, MOST_TOKENS), "ignore_eos": True}
    endpoint = f"{target.url.rstrip('/')}/v1/completions"
    start = time.monotonic()
    try:
        answer = direct().post(endpoint, json=body, timeout=scenario.request_timeout_s)
    except requests.RequestException as error:
        raise BenchmarkError(f"{endpoint} did not answer a first request ({type(error).__name__})") from None
    if answer.status_code != 200:
        reason = " ".join(answer.text.split())[:200]
        raise BenchmarkError(f"{endpoint} answered a first request with HTTP {answer.status_code}: {reason}")
    return time.monotonic() - start
