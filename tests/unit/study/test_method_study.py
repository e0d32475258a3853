"""The studies of the method: a small one is run, and what is committed is held against what was asked for."""

from __future__ import annotations

import math

import pytest

from benchmarks.boundary import Run
from tools.study import page, same
from tools.study.__main__ import FASTER
from tools.study.capacity import Capacity, Search, search_all, search_once
from tools.study.data import Studies, read
from tools.study.services import AGGREGATED, LEAST
from tools.study.truth import crossing


@pytest.fixture(scope="module")
def committed() -> Studies:
    return read(page.DATA)


@pytest.fixture(scope="module")
def searches() -> list[Search]:
    """Three searches, some seconds each."""
    return search_all(AGGREGATED, (1, 2, 3), LEAST)


def test_a_few_searches_find_the_truth_at_a_third_of_a_grids_cost(committed: Studies, searches: list[Search]) -> None:
    found = committed.capacity[0].model_copy(update={"searches": searches})
    assert found.within <= page.ERROR
    assert found.covered >= 2
    assert max(found.parts) <= page.PART_OF_GRID


def test_the_committed_data_are_of_this_method(committed: Studies, searches: list[Search]) -> None:
    """They are not, after a change of the search: `make study` then."""
    before = committed.capacity[0].searches[: len(searches)]
    assert [search.runs for search in searches] == [search.runs for search in before]
    assert [search.rate for search in searches] == pytest.approx([search.rate for search in before], rel=1e-6)


def test_a_service_is_no_better_than_itself_and_a_faster_one_is(searches: list[Search]) -> None:
    first, second, third = searches
    for other in (second, third):
        alike = same.compare(AGGREGATED, AGGREGATED, 1.0, ([first], [other]))
        assert alike.count("no difference shown") == 1
    quick = same.faster(AGGREGATED, FASTER)
    better = same.compare(AGGREGATED, quick, FASTER, ([first], [search_once(quick, 4, LEAST)]))
    assert better.count("more") == 1


def test_searches_of_one_seed_are_not_compared(searches: list[Search]) -> None:
    with pytest.raises(AssertionError):
        same.compare(AGGREGATED, AGGREGATED, 1.0, (searches, searches))


def test_the_truth_is_where_the_line_crosses_whatever_the_arrivals_did() -> None:
    """Runs at 8 to 12 req/s whose excess is a line that is 0 at 10, and whose rate was missed by up to 2 %."""
    missed = [0.98, 1.01, 1.0, 1.02, 0.99]
    rates = [8.0, 9.0, 10.0, 11.0, 12.0]
    runs = [
        Run(rate, rate * part, excess=2 * math.log(rate / 10) + 3 * math.log(part))
        for rate, part in zip(rates, missed, strict=True)
    ]
    found, error = crossing(runs)
    assert found == pytest.approx(10)
    assert error < 1e-6
    assert crossing([Run(8, 8, -0.1), Run(9, 9, -0.05)])[0] == float("inf")


def test_a_miss_is_said(committed: Studies) -> None:
    """A page that said `met` whatever was found would be worth nothing."""
    assert "**missed**" in page.text(_with(committed, _off(committed.capacity[0])))


def test_the_page_is_the_datas(committed: Studies) -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(committed)


def _with(studies: Studies, first: Capacity) -> Studies:
    return studies.model_copy(update={"capacity": [first, *studies.capacity[1:]]})


def _off(found: Capacity) -> Capacity:
    """The same searches, of which one is 6 % too high."""
    first, *others = found.searches
    return found.model_copy(update={"searches": [first.model_copy(update={"rate": found.truth.rate * 1.06}), *others]})
