"""What serving costs: money for tokens, nodes for a load, and the prices it is reckoned with."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from benchmarks.cost import Capacity, cost_per_million_output_tokens, nodes_for, saving, sets_for
from benchmarks.errors import BenchmarkError
from benchmarks.prices import find_price, load_prices


def test_money_for_a_million_output_tokens() -> None:
    """16 GPUs at 3.60 are 57.60 an hour; 4 req/s of 1,000 tokens are 14.4 million tokens in it."""
    capacity = Capacity(rate=4, lowest=2, highest=8, gpus=16, nodes=2, output_tokens=1000)
    cost = cost_per_million_output_tokens(3.60, capacity)
    assert cost.value == pytest.approx(4.00)
    # The lower the rate might be, the dearer a token.
    assert (cost.lowest, cost.highest) == (pytest.approx(2.00), pytest.approx(8.00))


@pytest.mark.parametrize(
    ("rate", "lowest", "highest", "gpus"), [(0, 0, 1, 8), (2, 3, 4, 8), (2, 1, 1.5, 8), (2, 1, 3, 0)]
)
def test_a_capacity_that_costs_nothing_is_refused(rate: float, lowest: float, highest: float, gpus: int) -> None:
    with pytest.raises(BenchmarkError, match="no cost without"):
        Capacity(rate=rate, lowest=lowest, highest=highest, gpus=gpus, nodes=1, output_tokens=100)


@pytest.mark.parametrize("tokens", [0.0, float("nan")])
def test_no_cost_without_output_tokens(tokens: float) -> None:
    with pytest.raises(BenchmarkError, match="no cost without output tokens"):
        Capacity(rate=2, lowest=1, highest=3, gpus=8, nodes=1, output_tokens=tokens)


def test_nodes_exactly_and_in_whole_sets() -> None:
    count = nodes_for(load=10, rate_of_a_set=4, nodes_of_a_set=3)
    assert count.exact == pytest.approx(7.5)
    assert count.whole == 9


@pytest.mark.parametrize(
    ("load", "rate", "sets"), [(2.1, 0.7, 3), (0.3, 0.1, 3), (7, 7, 1), (7.0001, 7, 2), (0.1, 9, 1)]
)
def test_whole_sets_are_not_one_too_many(load: float, rate: float, sets: int) -> None:
    """2.1 / 0.7 is 3.0000000000000004 in binary fractions."""
    assert sets_for(load, rate).whole == sets


@pytest.mark.parametrize(("load", "rate"), [(0, 1), (1, 0), (float("inf"), 1), (float("nan"), 1)])
def test_no_sets_for_nonsense(load: float, rate: float) -> None:
    with pytest.raises(BenchmarkError, match="must be above 0"):
        sets_for(load, rate)


def test_a_candidate_that_needs_more_saves_less_than_nothing() -> None:
    worse = saving(nodes_for(3, 3, 2), nodes_for(3, 2, 2))
    assert worse.exact == pytest.approx(-0.5)
    assert worse.whole == pytest.approx(-1.0)


def test_every_price_says_whose_where_and_when() -> None:
    prices = load_prices()
    assert prices
    for name, price in prices.items():
        assert price.source, name
        assert price.read is not None, name
        assert price.read <= date.today(), name
        assert str(price.per_gpu_hour) in str(price)
        assert str(price.read.year) in str(price)


def test_a_price_by_name_and_one_that_is_given() -> None:
    assert find_price("digitalocean-mi325x").provider == "DigitalOcean"
    given = find_price("2.5")
    assert given.per_gpu_hour == 2.5
    assert "--price" in str(given)


@pytest.mark.parametrize("wanted", ["cheap", "-1", "0", "inf", "nan", ""])
def test_a_price_that_is_none_is_one_line(wanted: str) -> None:
    with pytest.raises(BenchmarkError, match="digitalocean-mi325x") as refused:
        find_price(wanted)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {provider: p}", "price a: gpu: is missing"),
        ("a: 3", "price a: expected a mapping"),
        ("- a", "expected a mapping of price names"),
        ("a: [", "cannot read prices"),
    ],
)
def test_a_file_of_prices_that_is_wrong_names_the_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BenchmarkError, match=said):
        load_prices(file)
