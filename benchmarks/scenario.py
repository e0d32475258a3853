"""A scenario: what load to offer and what counts as good enough. The data is in scenarios.yaml."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from benchmarks.errors import BenchmarkError, first_problem

SCENARIOS_FILE = Path(__file__).with_name("scenarios.yaml")

Metric = Literal["ttft", "tpot", "itl", "e2e"]
Statistic = Literal["mean", "p50", "p90", "p99"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Slo(_Strict):
    """An upper bound on one statistic of one latency."""

    metric: Metric
    statistic: Statistic
    bound: float = Field(gt=0)
    unit: Literal["ms", "s"]

    @property
    def bound_ms(self) -> float:
        """The bound in milliseconds."""
        return self.bound * (1000.0 if self.unit == "s" else 1.0)

    def __str__(self) -> str:
        return f"{self.metric.upper()} {self.statistic} ≤ {self.bound:g} {self.unit}"


class Scenario(_Strict):
    """Load of one shape, offered at several request rates.

    isl and osl are in tokens; prefix_hit_rate is the fraction of isl that is one prefix shared by all requests;
    rates are requests per second; warmup_s, window_s and request_timeout_s are seconds. min_requests is the smallest
    number of requests in a measured window, whatever the rate: the window grows until it holds them.
    seed `per-run` takes new prompts and arrivals for every run, so that no run is answered from the prefix cache that
    an earlier one filled; a number repeats them.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    description: str
    isl: int = Field(ge=1)
    osl: int = Field(ge=2)
    prefix_hit_rate: float = Field(ge=0, lt=1)
    turns: int
    slo: list[Slo] = Field(min_length=1)
    rates: list[float] = Field(min_length=1)
    warmup_s: float = Field(gt=0)
    window_s: float = Field(gt=0)
    min_requests: int = Field(ge=5)
    arrivals: Literal["poisson"]
    request_timeout_s: float = Field(gt=0)
    seed: Literal["per-run"] | int

    @field_validator("turns")
    @classmethod
    def _one_turn(cls, turns: int) -> int:
        if turns != 1:
            raise ValueError("only single-turn load is offered: /v1/completions carries no conversation")
        return turns

    @field_validator("rates")
    @classmethod
    def _rates_make_sense(cls, rates: list[float]) -> list[float]:
        if not all(math.isfinite(rate) and rate > 0 for rate in rates) or len(set(rates)) != len(rates):
            raise ValueError("rates must be different numbers greater than 0")
        return sorted(rates)

    @property
    def prefix_tokens(self) -> int:
        """Length of the shared prefix in tokens."""
        return round(self.isl * self.prefix_hit_rate)

    def warmup_requests(self, rate: float) -> int:
        """How many leading requests at `rate` are warm-up: sent and accounted for, but not in the statistics."""
        return math.ceil(rate * self.warmup_s)

    def measured_requests(self, rate: float) -> int:
        """How many requests at `rate` are measured."""
        return max(math.ceil(rate * self.window_s), self.min_requests)

    def seconds(self, rate: float) -> float:
        """Expected length of the arrivals at `rate`, warm-up included, in seconds."""
        return (self.warmup_requests(rate) + self.measured_requests(rate)) / rate

    def with_rates(self, rates: Sequence[float]) -> Scenario:
        """The same scenario at other rates. Raises BenchmarkError when they make no sense."""
        try:
            return Scenario.model_validate({**self.model_dump(), "rates": list(rates)})
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


def load_scenarios(path: Path = SCENARIOS_FILE) -> dict[str, Scenario]:
    """All scenarios of a file, by name. Raises BenchmarkError naming the scenario and the key at fault."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise BenchmarkError(f"cannot read scenarios from {path}: {str(error).splitlines()[0]}") from None
    if not isinstance(raw, dict):
        raise BenchmarkError(f"{path}: expected a mapping of scenario names to settings")
    scenarios: dict[str, Scenario] = {}
    for name, body in raw.items():
        try:
            scenarios[name] = Scenario.model_validate({"name": name, **(body or {})})
        except ValidationError as error:
            raise BenchmarkError(f"{path}: scenario {name}: {first_problem(error)}") from None
    return scenarios


def find_scenario(name: str, path: Path = SCENARIOS_FILE) -> Scenario:
    """One scenario by name. Raises BenchmarkError listing what there is."""
    scenarios = load_scenarios(path)
    if name not in scenarios:
        known = ", ".join(sorted(scenarios))
        raise BenchmarkError(f"no scenario called {name!r} in {path.name}; there are: {known}")
    return scenarios[name]
