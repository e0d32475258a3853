"""What the simulated server does wrong on demand. Everything is off by default, and hits streamed requests only.

Requests answered in one piece are left alone, so that the benchmark's priming passes. A share picks its requests at
random, from the seed and the order of arrival; several kinds pick independently of each other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import BenchmarkError, first_problem
from tools.simulated_server.delivery import Terms
from tools.simulated_server.deployment import KvFate

Share = Annotated[float, Field(ge=0, le=1)]


class Misbehaviour(BaseModel):
    """One field for each kind. The descriptions are the documentation's table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    error_in_stream: Share = Field(
        default=0, description="share of answers cut off half-way by an error inside the 200 stream"
    )
    empty: Share = Field(default=0, description="share of answers without a token")
    cut_prompt: Share = Field(default=0, description="share of prompts of which only the second half is taken")
    without_usage: Share = Field(default=0, description="share of answers without token counts")
    short: Share = Field(default=0, description="share of answers with half the tokens that were asked for")
    http_500: Share = Field(default=0, description="share of requests refused with HTTP 500")
    stall: Share = Field(default=0, description="share of answers that stop half-way and never end")
    slowdown_per_s: float = Field(
        default=0,
        ge=0,
        description="steps grow by this share of their time each second from the first streamed request on",
    )
    burst: int = Field(default=1, ge=1, description="tokens of an answer held back until there are so many")
    delivery_tokens_per_s: float = Field(
        default=0,
        ge=0,
        description="tokens that one replica gets out in a second, however fast its engine is (0: any number)",
    )
    warm_cache: Share = Field(
        default=0, description="share of each prompt that is taken for cached though it never was there"
    )
    cold_cache: Share = Field(default=0, description="share of the cached blocks that are not used")
    kv_not_moved: Share = Field(
        default=0, description="share of prompts whose KV decode never asks for, and computes itself"
    )
    kv_recomputed: Share = Field(
        default=0, description="share of prompts whose KV decode reads, and computes all the same"
    )
    kv_failed: Share = Field(
        default=0, description="share of prompts whose KV decode fails to read, and computes itself"
    )
    kv_expired: Share = Field(
        default=0, description="share of prompts whose KV blocks prefill gives away before they are read"
    )
    kv_over_tcp: bool = Field(default=False, description="decode's engines may use nothing but TCP")
    restart_at_request: int = Field(
        default=0, ge=0, description="the last replica restarts when this streamed request comes: new id, counters at 0"
    )
    foreign: Share = Field(
        default=0, description="share of requests beside which somebody else sends one of the same lengths"
    )
    die_at_request: int = Field(default=0, ge=0, description="the process exits when this streamed request comes")

    @property
    def terms(self) -> Terms:
        """How tokens are delivered."""
        return Terms(self.burst, self.delivery_tokens_per_s)


_FATES: dict[str, KvFate] = {
    "kv_not_moved": "not moved",
    "kv_recomputed": "recomputed",
    "kv_failed": "failed",
    "kv_expired": "expired",
}
# The shares that pick requests.
_OF_REQUESTS = (
    "error_in_stream",
    "empty",
    "cut_prompt",
    "without_usage",
    "short",
    "http_500",
    "stall",
    "foreign",
    *_FATES,
)


@dataclass(frozen=True)
class Plan:
    """What one request gets. tokens: of its answer; cut: its prompt is; broken and stalled: half-way."""

    tokens: int
    refused: bool = False
    cut: bool = False
    broken: bool = False
    stalled: bool = False
    usage: bool = True
    foreign: bool = False
    kv: KvFate = "moved"


class Planner:
    """Plans requests in the order in which they come."""

    def __init__(self, misbehaviour: Misbehaviour, seed: int) -> None:
        self._wrong = misbehaviour
        self._draws = {name: random.Random(f"{seed} {name}") for name in _OF_REQUESTS}

    def plan(self, asked: int) -> Plan:
        """The next request, which asks for `asked` tokens."""
        hit = {name: draw.random() < getattr(self._wrong, name) for name, draw in self._draws.items()}
        fates: list[KvFate] = [fate for name, fate in _FATES.items() if hit[name]]
        return Plan(
            tokens=0 if hit["empty"] else max(1, asked // 2) if hit["short"] else asked,
            refused=hit["http_500"],
            cut=hit["cut_prompt"],
            broken=hit["error_in_stream"],
            stalled=hit["stall"],
            usage=not hit["without_usage"],
            foreign=hit["foreign"],
            kv=fates[0] if fates else "moved",
        )


def parse(settings: Sequence[str]) -> Misbehaviour:
    """From `key=value` texts. Raises BenchmarkError naming the one at fault."""
    found: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in Misbehaviour.model_fields:
            known = ", ".join(Misbehaviour.model_fields)
            raise BenchmarkError(f"--misbehave {setting}: give KEY=VALUE with a key of {known}")
        found[key] = value
    try:
        return Misbehaviour.model_validate(found)
    except ValidationError as error:
        raise BenchmarkError(f"--misbehave: {first_problem(error)}") from None
