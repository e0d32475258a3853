"""The highest rate under each SLO of a scenario, as a result that is kept and shown."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, TypeAdapter

from benchmarks.joint_search import conclude, met, out_of_order
from benchmarks.measured import Measured
from benchmarks.run_directory import ANSWERS, RunDirectory
from benchmarks.scenario import Scenario
from benchmarks.slo import Slo


class HighestRate(BaseModel):
    """Requests per second, with `confidence`: `passes`, the highest shown to pass; `fails`, the lowest shown to fail;
    `rate`, the estimate between them. What the runs do not show is None.

    met_up_to: the highest rate measured, where the SLO was met at all; missed_from: the lowest, where it was at none.
    missed_below, met_above: a rate that misses it, and a higher one that meets it, where no single rate parts the two.
    """

    confidence: float
    rate: float | None
    passes: float | None
    fails: float | None
    met_up_to: float | None = None
    missed_from: float | None = None
    missed_below: float | None = None
    met_above: float | None = None

    @property
    def ranged(self) -> bool:
        """Whether there is an estimate with a range around it."""
        if self.rate is None or self.passes is None or self.fails is None:
            return False
        return self.passes <= self.rate <= self.fails

    def __str__(self) -> str:
        if self.met_up_to is not None:
            return f"met at every rate measured, up to {self.met_up_to:.3g} req/s"
        if self.missed_from is not None:
            return f"missed at every rate measured, down to {self.missed_from:.3g} req/s"
        if self.missed_below is not None and self.met_above is not None:
            return f"not monotone: missed at {self.missed_below:.3g} req/s, but met at {self.met_above:.3g}"
        if self.ranged:
            return f"{self.rate:.3g} [{self.passes:.3g} to {self.fails:.3g}] req/s"
        return f"about {self.rate:.3g} req/s, without a range" if self.rate else "not known"


class SloAnswer(BaseModel):
    """One SLO: its name in the scenario, its bounds in words, and the rate up to which it is met."""

    name: str
    bounds: list[str]
    highest: HighestRate


def answer_slos(scenario: Scenario, measured: Sequence[Measured]) -> list[SloAnswer]:
    """The highest rate under every SLO of a scenario, from at least one measured rate."""
    return [
        SloAnswer(name=name, bounds=[str(bound) for bound in bounds], highest=highest_rate(bounds, measured))
        for name, bounds in scenario.slo_sets.items()
    ]


def write_answers(run: RunDirectory, measured: Sequence[Measured]) -> None:
    """Keep what a finished run answers: from this moment it is complete."""
    text = _ANSWERS.dump_json(answer_slos(run.scenario, measured), indent=2).decode()
    run.keep(ANSWERS, text)


_ANSWERS = TypeAdapter(list[SloAnswer])


def highest_rate(bounds: Sequence[Slo], measured: Sequence[Measured]) -> HighestRate:
    """The highest rate under one SLO."""
    found = conclude(bounds, measured)
    passed = met(bounds, measured)
    rates = [run.rate for run in measured]
    missed_below, met_above = out_of_order(bounds, measured) or (None, None)
    return HighestRate(
        confidence=found.confidence,
        rate=found.rate,
        passes=found.passes,
        fails=found.fails,
        met_up_to=max(rates) if all(passed) else None,
        missed_from=min(rates) if not any(passed) else None,
        missed_below=missed_below,
        met_above=met_above,
    )
