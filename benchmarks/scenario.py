"""A scenario: what load to offer and what counts as good enough. Files of them: benchmarks/scenario_files.py."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from benchmarks.conversations import check_spacing, check_turns
from benchmarks.errors import BenchmarkError, first_problem
from benchmarks.lengths import Length, highest_of, lowest_of, mean_of
from benchmarks.run_length import LONGEST_WARMUP_PART
from benchmarks.scenario_parts import FASTEST, LONGEST_S, MOST_SENT, SLOWEST, Search, Strict, TraceFile
from benchmarks.slo import Slo
from benchmarks.trace_files import Traced, read_trace, sha256_of

# Twenty times the memory of a queue near saturation, in the study's services: docs/explanation/method-study.md.
MOST_REQUESTS = 4000


class Scenario(Strict):
    """Load of one shape, and what counts as good enough. The reference of all keys: docs/reference/scenarios.md.

    isl and osl are in tokens. prefix_hit_rate is the share of all prompt tokens that an earlier prompt has sent, in
    whole blocks of the server's prefix cache. rates and search are requests per second; warmup_s, window_s and
    request_timeout_s are seconds. min_requests is the smallest number of requests in a measured window, whatever the
    rate: the window grows until it holds them. Warm-up and window are what is sent at least: a service that settles
    slowly gets more of both (benchmarks/run_length.py), up to max_requests in a window. `also` names further sets of
    bounds that the same measurements answer. seed `per-run` takes new prompts and arrivals for every run, so that no
    run is answered from the prefix cache that an earlier one filled; a number repeats them.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    description: str
    stacks: list[str] = Field(default_factory=list)
    isl: Length | None = None
    osl: Length | None = None
    trace: TraceFile | None = None
    prefix_hit_rate: float = Field(default=0, ge=0, lt=1)
    turns: int = Field(default=1, ge=1, le=1000)
    slo: list[Slo] = Field(min_length=1)
    also: dict[str, list[Slo]] = Field(default_factory=dict)
    rates: list[float] = Field(default_factory=list)
    search: Search | None = None
    warmup_s: float = Field(gt=0, le=LONGEST_S)
    window_s: float = Field(gt=0, le=LONGEST_S)
    min_requests: int = Field(ge=5, le=MOST_SENT)
    max_requests: int = Field(default=MOST_REQUESTS, ge=5, le=MOST_SENT)
    arrivals: Literal["poisson", "trace"] = "poisson"
    request_timeout_s: float = Field(gt=0, le=LONGEST_S)
    seed: Literal["per-run"] | Annotated[int, Field(ge=-(2**63), lt=2**63)] = "per-run"

    @field_validator("trace", mode="before")
    @classmethod
    def _just_a_file(cls, value: object) -> object:
        return {"file": value} if isinstance(value, str) else value

    @field_validator("rates")
    @classmethod
    def _rates_make_sense(cls, rates: list[float]) -> list[float]:
        if not all(math.isfinite(rate) and rate > 0 for rate in rates):
            raise ValueError("rates must be different numbers greater than 0")
        if any(not SLOWEST <= rate <= FASTEST for rate in rates):
            raise ValueError(f"rates must lie between {SLOWEST:g} and {FASTEST:g} req/s")
        # As folders are named, and as AIPerf is told them.
        names = [f"{rate:g}" for rate in rates]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"rates must be different numbers greater than 0, and {twice} stands twice (six digits)")
        return sorted(rates)

    @model_validator(mode="after")
    def _whole(self) -> Scenario:
        if bool(self.rates) == bool(self.search):
            raise ValueError(
                "give either rates, to measure each, or search, to look for the highest that meets the SLO"
            )
        if (self.trace is None) == (self.isl is None and self.osl is None):
            raise ValueError("give either isl and osl, or trace")
        if self.trace is None and (self.isl is None or self.osl is None):
            raise ValueError("isl and osl go together")
        if self.osl is not None and lowest_of(self.osl) < 2:
            raise ValueError("osl: answers of one token have no time per output token; at least 2")
        if self.arrivals == "trace" and self.trace is None:
            raise ValueError("arrivals: trace replays the spacing of a trace, and there is none")
        if any(name.strip() in ("", "slo") for name in self.also):
            raise ValueError("also: each set needs a name, and not slo, which results call the scenario's own bounds")
        if any(not bounds for bounds in self.also.values()):
            raise ValueError("each set under also needs a bound")
        if self.max_requests < self.min_requests:
            raise ValueError(f"max_requests: at least min_requests, {self.min_requests}; it is {self.max_requests}")
        fastest = self.search.highest if self.search else self.rates[-1]
        for name, seconds in (("warmup_s", self.warmup_s), ("window_s", self.window_s)):
            if fastest * seconds > MOST_SENT:
                raise ValueError(f"{name}: {seconds:g} s at {fastest:g} req/s are over {MOST_SENT:,} requests")
        if self.turns > 1 and self.trace is not None:
            raise ValueError("turns: a trace has its own conversations, if any")
        if self.turns > 1:
            isl, osl = (mean_of(length) for length in self.lengths)
            check_turns(self.turns, self.prefix_hit_rate, isl, osl)
            check_spacing(self.longest_answer_s, self.warmup_s)
        return self

    @property
    def lengths(self) -> tuple[Length, Length]:
        """isl and osl of a scenario without a trace."""
        assert self.isl is not None  # noqa: S101
        assert self.osl is not None  # noqa: S101
        return self.isl, self.osl

    def traced(self) -> tuple[Traced, ...]:
        """The requests of its trace. Raises BenchmarkError when that cannot be read, or is not the one it was."""
        assert self.trace is not None  # noqa: S101
        return read_trace(Path(self.trace.file), self.trace.longest, self.trace.sha256)

    def pinned(self) -> Scenario:
        """The same with the SHA-256 of its trace, if it has one. Raises BenchmarkError when that cannot be read."""
        if self.trace is None:
            return self
        self.traced()
        update = {"sha256": sha256_of(Path(self.trace.file))}
        return self.model_copy(update={"trace": self.trace.model_copy(update=update)})

    @property
    def longest(self) -> tuple[int, int]:
        """Tokens of the longest prompt and of the longest answer. Raises BenchmarkError when a trace cannot be read."""
        if self.trace is not None:
            rows = self.traced()
            return max(row.isl for row in rows), max(row.osl for row in rows)
        isl, osl = self.lengths
        if self.turns == 1:
            return highest_of(isl), highest_of(osl)
        # The last prompt of a conversation is as long as all that is not sent again.
        return math.ceil((1 - self.prefix_hit_rate) * self.turns * highest_of(isl)), highest_of(osl)

    @property
    def shape(self) -> str:
        """Lengths in a few characters: `16384/1024`."""
        if self.trace is not None:
            return Path(self.trace.file).name
        isl, osl = self.lengths
        return f"{isl}/{osl}"

    @property
    def longest_answer_s(self) -> float:
        """How long an answer may take by the SLO: seconds, from its bound on E2E, or TTFT and TPOT; 0 without."""
        bounds = {
            metric: [slo.bound_ms for slo in self.slo if slo.metric == metric] for metric in ("e2e", "tpot", "ttft")
        }
        if bounds["e2e"]:
            return max(bounds["e2e"]) / 1000
        if not bounds["tpot"]:
            return 0.0
        return (max(bounds["ttft"], default=0.0) + highest_of(self.lengths[1]) * max(bounds["tpot"])) / 1000

    @property
    def slo_sets(self) -> dict[str, list[Slo]]:
        """Every SLO by name, that of the scenario itself first."""
        return {"slo": self.slo, **self.also}

    def warmup_requests(self, rate: float) -> int:
        """How many leading requests at `rate` are warm-up at least: sent, accounted for, not in the statistics."""
        return math.ceil(rate * self.warmup_s)

    def measured_requests(self, rate: float) -> int:
        """How many requests at `rate` are measured at least."""
        return max(math.ceil(rate * self.window_s), self.min_requests)

    def most_seconds(self, rate: float) -> float:
        """How long the arrivals at `rate` last at most, warm-up included (benchmarks/run_length.py)."""
        window = max(self.measured_requests(rate), self.max_requests)
        return (max(self.warmup_requests(rate), window * LONGEST_WARMUP_PART) + window) / rate

    def with_rates(self, rates: Sequence[float]) -> Scenario:
        """The same scenario at these rates, and no search. Raises BenchmarkError when they make no sense."""
        try:
            return Scenario.model_validate({**self.model_dump(), "rates": list(rates), "search": None})
        except ValidationError as error:
            raise BenchmarkError(f"--rates: {first_problem(error)}") from None

    def at(self, rates: str | None) -> Scenario:
        """The same at the rates that a command line names (`0.5,1`), or at its own. Raises BenchmarkError."""
        if rates is None:
            return self
        try:
            numbers = [float(rate) for rate in rates.split(",")]
        except ValueError:
            raise BenchmarkError(f"--rates {rates!r}: give numbers with commas between them, such as 0.5,1") from None
        return self.with_rates(numbers)


def seed_for(scenario: Scenario, run_id: str, rate: float, attempt: int) -> int:
    """The seed of one attempt at one rate of one run: the same four always give the same prompts and arrivals.

    A second attempt has prompts of its own, because the first has left its prompts in the service's prefix cache.
    """
    base = f"{run_id}/{attempt}" if scenario.seed == "per-run" else str(scenario.seed)
    digest = hashlib.sha256(f"{base}/{scenario.name}/{rate:g}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1  # numpy, below AIPerf, takes 31 bits everywhere
