"""The blocks inside a scenario: a search, and the trace that it replays."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

# Before a range is believed: fewer degrees of freedom would raise t, and a lucky few runs can lie on a line.
FEWEST_RUNS = 10


# Far above any use, so that a slip of the keyboard is told at once and not after days, or by a traceback.
LONGEST_S = 7 * 24 * 3600  # a week
MOST_SENT = 1_000_000  # requests of one rate; AIPerf holds them all in memory
SLOWEST, FASTEST = 0.001, 100_000.0  # requests per second


class Strict(BaseModel):
    """A block of a scenario: every key is known, and no value changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _is_what_it_seems(cls, value: object) -> object:
        if isinstance(value, bool):  # pydantic takes it for 0 or 1
            raise ValueError(f"must not be {str(value).lower()}")
        if isinstance(value, str) and any((c < " " and c not in "\n\t") or "\ud800" <= c <= "\udfff" for c in value):
            raise ValueError("has control characters, or halves of characters")
        return value


class Search(Strict):
    """Between which rates, in requests per second, the highest that meets the SLO is looked for.

    half_width: of the range that the result is to have, as a part of it. most_runs: rates measured for one SLO at most.
    """

    lowest: float = Field(ge=SLOWEST, le=FASTEST)
    highest: float = Field(ge=SLOWEST, le=FASTEST)
    half_width: float = Field(default=0.03, gt=0, lt=0.5)
    most_runs: int = Field(default=16, ge=FEWEST_RUNS, le=1000)

    @model_validator(mode="after")
    def _in_order(self) -> Search:
        if not self.lowest < self.highest:
            raise ValueError("lowest must be less than highest")
        return self

    def __str__(self) -> str:
        return f"search {self.lowest:g}-{self.highest:g}"


class TraceFile(Strict):
    """A recorded trace that lengths come from, and shared blocks where it has any: benchmarks/trace_files.py.

    file: beside the scenarios file if it is no absolute path. longest: requests of more tokens, prompt and answer
    together, are left out, such as those that the engine's max_model_len does not hold. sha256: of the file's content,
    in hexadecimal; a run writes down that of the trace it began with, and takes no other.
    """

    file: str = Field(min_length=1)
    longest: int | None = Field(default=None, gt=1)
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
