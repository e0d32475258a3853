"""Intervals cover the truth about as often as they say, also when successive requests are alike."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bootstrap import LEVEL, block_length, interval_of_mean, interval_of_quantile

WINDOWS = 80


def autoregressive(correlation: float, count: int, seed: int) -> np.ndarray:
    """Values with a standard normal distribution of which each resembles the one before."""
    random = np.random.default_rng(seed)
    values = [random.normal()]
    for noise in random.normal(scale=np.sqrt(1 - correlation**2), size=count - 1):
        values.append(correlation * values[-1] + noise)
    return np.array(values)


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_intervals_cover_the_truth(correlation: float) -> None:
    covered = {"mean": 0, "p90": 0}
    for seed in range(WINDOWS):
        values = autoregressive(correlation, 400, seed).tolist()
        low, high = interval_of_mean(values)
        covered["mean"] += low <= 0 <= high
        low, high = interval_of_quantile(values, 0.9)
        covered["p90"] += low <= 1.2816 <= high
    # Blocks of the right length still know only their window: with strong correlation some points are lost.
    fewest = (LEVEL - (0.05 if correlation == 0 else 0.1)) * WINDOWS
    assert min(covered.values()) >= fewest, covered
    assert max(covered.values()) < WINDOWS


def test_single_draws_would_have_covered_it_much_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.bootstrap.block_length", lambda series: 1)
    covered = 0
    for seed in range(WINDOWS):
        low, high = interval_of_mean(autoregressive(0.7, 400, seed).tolist())
        covered += low <= 0 <= high
    assert covered < 0.65 * WINDOWS


def test_blocks_are_as_long_as_values_stay_alike() -> None:
    assert np.mean([block_length(autoregressive(0.0, 400, seed)) for seed in range(20)]) < 3
    assert np.mean([block_length(autoregressive(0.7, 400, seed)) for seed in range(20)]) > 8
    assert block_length(np.full(400, 0.1)) == 1


# What optimal_block_length of the package arch (8.0), another implementation of the paper, gives for circular blocks.
@pytest.mark.parametrize(
    ("correlation", "count", "seed", "length"),
    [(0.7, 400, 1, 10.6), (0.7, 400, 2, 9.1), (0.9, 400, 1, 31.7), (0.5, 1000, 3, 13.3)],
)
def test_blocks_are_as_long_as_elsewhere(correlation: float, count: int, seed: int, length: float) -> None:
    assert block_length(autoregressive(correlation, count, seed)) == pytest.approx(length, abs=1)


def test_the_same_records_always_give_the_same_interval() -> None:
    values = autoregressive(0.5, 400, 1).tolist()
    assert interval_of_quantile(values, 0.5) == interval_of_quantile(values, 0.5)


@pytest.mark.parametrize("values", [[3.0], [3.0] * 50])
def test_values_that_are_all_the_same_have_no_width(values: list[float]) -> None:
    assert interval_of_mean(values) == interval_of_quantile(values, 0.9) == (3.0, 3.0)
