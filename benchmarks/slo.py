"""What counts as good enough: bounds on latencies."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Metric = Literal["ttft", "tpot", "itl", "e2e"]
Statistic = Literal["mean", "p50", "p90", "p99"]


class Slo(BaseModel):
    """An upper bound on one statistic of one latency."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Metric
    statistic: Statistic
    bound: float = Field(gt=0, le=86_400_000)  # a day in milliseconds
    unit: Literal["ms", "s"]

    @property
    def bound_ms(self) -> float:
        """The bound in milliseconds."""
        return self.bound * (1000.0 if self.unit == "s" else 1.0)

    def __str__(self) -> str:
        return f"{self.metric.upper()} {self.statistic} ≤ {self.bound:g} {self.unit}"
