"""Lengths drawn from a distribution have its mean and spread, and never leave its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError

from benchmarks.lengths import Lognormal, draw, highest_of, lowest_of, mean_of


def lognormal(mean: float, sigma: float, lowest: int, highest: int) -> Lognormal:
    return Lognormal.model_validate({"lognormal": {"mean": mean, "sigma": sigma, "lowest": lowest, "highest": highest}})


def drawn(length: Lognormal, count: int = 20_000) -> np.ndarray:
    return np.asarray(draw(length, count, np.random.default_rng(1)), dtype=float)


@pytest.mark.parametrize(
    ("mean", "sigma", "lowest", "highest"),
    [(8192, 0.5, 1024, 32768), (300, 1.2, 2, 2048), (300, 0.8, 200, 400), (1000, 2.0, 16, 16384)],
)
def test_the_mean_is_the_one_asked_for_whatever_the_bounds_cut_off(
    mean: float, sigma: float, lowest: int, highest: int
) -> None:
    values = drawn(lognormal(mean, sigma, lowest, highest))
    assert values.min() >= lowest
    assert values.max() <= highest
    assert values.mean() == pytest.approx(mean, abs=4 * values.std() / math.sqrt(values.size))


def test_far_bounds_leave_the_lognormal_as_it_is() -> None:
    logs = np.log(drawn(lognormal(4000, 0.6, 1, 10_000_000)))
    assert logs.std() == pytest.approx(0.6, rel=0.02)
    assert logs.mean() == pytest.approx(math.log(4000) - 0.6**2 / 2, abs=0.02)
    # Symmetric, as the logarithm of nothing but a lognormal is.
    assert abs(((logs - logs.mean()) ** 3).mean() / logs.std() ** 3) < 0.06


def test_a_number_is_everyones_length() -> None:
    assert draw(256, 3, np.random.default_rng(1)) == [256, 256, 256]
    assert (lowest_of(256), mean_of(256), highest_of(256)) == (256, 256.0, 256)
    spread = lognormal(300, 1.0, 2, 2048)
    assert (lowest_of(spread), mean_of(spread), highest_of(spread)) == (2, 300.0, 2048)


def test_other_seeds_draw_other_lengths() -> None:
    spread = lognormal(300, 1.0, 2, 2048)
    one, again, other = (draw(spread, 50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == again != other


def test_a_mean_at_a_bound_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"mean 100\.001 is too close to a bound for sigma 0.5"):
        lognormal(100.001, 0.5, 100, 400)


@pytest.mark.parametrize("mean", [100, 400, 50, 1000])
def test_a_mean_outside_of_the_bounds_is_refused(mean: float) -> None:
    with pytest.raises(ValidationError, match="mean must lie between lowest and highest"):
        lognormal(mean, 0.5, 100, 400)
