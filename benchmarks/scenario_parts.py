"""The blocks inside a scenario: a search, and the trace that it replays."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

# Before a range is believed: fewer degrees of freedom would raise t, and a lucky few runs can lie on a line.
FEWEST_RUNS = 10


class Strict(BaseModel):
    """A block of a scenario: every key is known, and no value changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Search(Strict):
    """Between which rates, in requests per second, the highest that meets the SLO is looked for.

    half_width: of the range that the result is to have, as a part of it. most_runs: rates measured for one SLO at most.
    """

    lowest: float = Field(gt=0)
    highest: float = Field(gt=0)
    half_width: float = Field(default=0.03, gt=0, lt=0.5)
    most_runs: int = Field(default=16, ge=FEWEST_RUNS)

    @model_validator(mode="after")
    def _in_order(self) -> Search:
        if not self.lowest < self.highest < math.inf:
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

    @field_validator("file")
    @classmethod
    def _is_a_name(cls, file: str) -> str:
        if "\0" in file:
            raise ValueError("no file has a NUL in its name")
        return file
