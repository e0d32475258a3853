"""What two boundaries say about each other."""

import math
from dataclasses import replace

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


@pytest.mark.parametrize(("end", "value"), [("passes", None), ("fails", None)])
def test_a_boundary_that_is_open_at_one_end_is_not_compared(end: str, value: None) -> None:
    """The spread of a line that is not shown to rise is no spread of where it crosses."""
    assert ratio(known(5.0), replace(known(7.0), **{end: value})).verdict == "not known"
    assert ratio(replace(known(5.0), **{end: value}), known(7.0)).verdict == "not known"


def test_a_ratio_that_may_be_anything_is_not_known() -> None:
    """Two runs more than the line has parameters and much scatter: t of one degree of freedom is 64 at 99 %."""
    assert ratio(known(5.0, spread=20.0, freedom=1), known(5.0, spread=20.0, freedom=1)).verdict == "not known"
