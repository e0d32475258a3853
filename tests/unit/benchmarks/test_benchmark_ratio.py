"""What two boundaries say about each other."""

import math

import numpy as np
import pytest

from benchmarks.boundary import Boundary
from benchmarks.ratio import CONFIDENCE, ratio


def known(rate: float, spread: float = 0.01, freedom: int = 6) -> Boundary:
    """A boundary with a range."""
    return Boundary(0.9, 8, rate, rate * 0.98, rate * 1.02, spread, freedom)


def test_a_clear_difference_has_a_range_that_leaves_out_one() -> None:
    found = ratio(known(5.0), known(7.0))
    assert found.verdict == "more"
    assert found.estimate == pytest.approx(1.4)
    assert found.low is not None
    assert found.high is not None
    assert 1 < found.low < 1.4 < found.high


def test_the_other_way_round_it_is_the_inverse() -> None:
    there, back = ratio(known(5.0), known(7.0)), ratio(known(7.0), known(5.0))
    assert back.verdict == "less"
    assert back.low == pytest.approx(1 / (there.high or 0))
    assert back.high == pytest.approx(1 / (there.low or 0))


def test_a_difference_within_the_scatter_is_none() -> None:
    assert ratio(known(5.0), known(5.1)).verdict == "no difference shown"
    assert ratio(known(5.0, spread=0.1), known(6.0, spread=0.1)).verdict == "no difference shown"


def test_without_both_boundaries_nothing_is_known() -> None:
    assert ratio(known(5.0), Boundary(0.9, 0)).verdict == "not known"
    assert ratio(Boundary(0.9, 0), known(5.0)).verdict == "not known"
    assert ratio(known(5.0), Boundary(0.9, 3, rate=6.0)).verdict == "not known"


def test_equal_sides_are_told_apart_as_seldom_as_it_says() -> None:
    """Boundaries estimated from few runs: their spread is estimated, too, and t makes up for it."""
    draw = np.random.default_rng(7)
    wrong = 0
    for _ in range(2_000):
        sides = []
        for freedom in (5, 7):
            scatter = 0.02 * math.sqrt(draw.chisquare(freedom) / freedom)
            sides.append(known(5 * math.exp(0.02 * draw.standard_normal()), scatter, freedom))
        wrong += ratio(sides[0], sides[1]).verdict != "no difference shown"
    assert wrong / 2_000 <= (1 - CONFIDENCE) * 1.6
