"""Lengths of prompts and answers: one for all, or drawn from a distribution."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

if TYPE_CHECKING:
    from numpy.random import Generator

_NORMAL = NormalDist()
# Of one prompt or answer. The longest context that a published model claims is 10M tokens (Llama 4 Scout's card).
MOST_TOKENS = 10_000_000


class LognormalBody(BaseModel):
    """Tokens. mean: of the lengths drawn, which all lie in lowest..highest. sigma: spread of the logarithm."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mean: float = Field(gt=0, le=MOST_TOKENS)
    sigma: float = Field(ge=0.001, le=3)
    lowest: int = Field(ge=1, le=MOST_TOKENS)
    highest: int = Field(ge=1, le=MOST_TOKENS)

    @model_validator(mode="after")
    def _mean_inside(self) -> LognormalBody:
        if not self.lowest < self.mean < self.highest:
            raise ValueError(
                f"mean must lie between lowest and highest, and {self.mean:g} is not in {self.lowest}..{self.highest}"
            )
        if not math.isfinite(_centre(self)):
            raise ValueError(f"mean {self.mean:g} is too close to a bound for sigma {self.sigma:g}")
        return self


class Lognormal(BaseModel):
    """`{lognormal: {...}}` in a scenario."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lognormal: LognormalBody

    def __str__(self) -> str:
        body = self.lognormal
        return f"~{body.mean:g} ({body.lowest}-{body.highest})"


def _kind_of_length(value: object) -> str:
    return "lognormal" if isinstance(value, dict | Lognormal) else "tokens"


# Told apart by what is written, so that an error is about that and not about every kind in turn.
Length = Annotated[
    Annotated[int, Field(ge=1, le=MOST_TOKENS), Tag("tokens")] | Annotated[Lognormal, Tag("lognormal")],
    Discriminator(_kind_of_length),
]


def mean_of(length: Length) -> float:
    """The mean in tokens."""
    return length.lognormal.mean if isinstance(length, Lognormal) else float(length)


def highest_of(length: Length) -> int:
    """The longest in tokens."""
    return length.lognormal.highest if isinstance(length, Lognormal) else length


def lowest_of(length: Length) -> int:
    """The shortest in tokens."""
    return length.lognormal.lowest if isinstance(length, Lognormal) else length


def draw(length: Length, count: int, random: Generator) -> list[int]:
    """`count` lengths in tokens."""
    if isinstance(length, int):
        return [length] * count
    body = length.lognormal
    centre = _centre(body)
    low, high = (_phi((math.log(bound) - centre) / body.sigma) for bound in (body.lowest, body.highest))
    # Through the inverse of the distribution's own function, so that no draw has to be thrown away.
    values = [math.exp(centre + body.sigma * _NORMAL.inv_cdf(u)) for u in random.uniform(low, high, count)]
    return [min(max(round(value), body.lowest), body.highest) for value in values]


def _centre(body: LognormalBody) -> float:
    """The mean of the logarithm for which the truncated distribution has the mean asked for; nan when none has.

    That mean grows with the centre, so bisection finds it.
    """
    reach = 8 * body.sigma  # farther out, all draws lie in a tail that a float cannot tell from nothing
    low, high = math.log(body.lowest) - reach, math.log(body.highest) + reach
    if not _truncated_mean(low, body) < body.mean < _truncated_mean(high, body):
        return math.nan
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _truncated_mean(middle, body) < body.mean else (low, middle)
    return (low + high) / 2


def _truncated_mean(centre: float, body: LognormalBody) -> float:
    """exp(m + s²/2) · (Φ(b − s) − Φ(a − s)) / (Φ(b) − Φ(a)), a and b the standardised logarithms of the bounds."""
    low, high = ((math.log(bound) - centre) / body.sigma for bound in (body.lowest, body.highest))
    share = _between(low, high)
    if share <= 0.0:
        return float(body.lowest if low > 0 else body.highest)
    return math.exp(centre + body.sigma**2 / 2) * _between(low - body.sigma, high - body.sigma) / share


def _between(low: float, high: float) -> float:
    """Probability of a normal variate between two bounds, from the tail that keeps the digits."""
    return _phi(-low) - _phi(-high) if low > 0 else _phi(high) - _phi(low)


def _phi(value: float) -> float:
    """The normal distribution function; `NormalDist.cdf` has no digits left far down the lower tail."""
    return 0.5 * math.erfc(-value / math.sqrt(2))
