"""A chart draws every value, tells it to a pointer, and can be downloaded."""

from __future__ import annotations

import csv
import io
from urllib.parse import unquote
from xml.etree import ElementTree

from benchmarks.bars import Bar, Bars
from benchmarks.charts import Chart, Point, Series, latency_chart, spread

SVG = "{http://www.w3.org/2000/svg}"
CHART = Chart(
    "Time, & more",
    "milliseconds",
    [Series("p50", [Point(0.5, 3.0), Point(4.0, 123.0, 101.0, 140.0)]), Series("nothing", [])],
    [("SLO p90 ≤ 200 ms", 200.0), ("SLO far", 1e6)],
)


def texts(svg: str, tag: str) -> list[str]:
    elements = ElementTree.fromstring(svg).iter(f"{SVG}{tag}")  # noqa: S314 - made here
    return [" ".join(element.itertext()) for element in elements]


def test_points_bounds_and_names_are_drawn() -> None:
    assert texts(CHART.svg, "title") == [
        "p50 at 0.5 req/s: 3 milliseconds",
        "p50 at 4 req/s: 123 milliseconds [101 to 140]",
    ]
    drawn = texts(CHART.svg, "text")
    assert {"p50", "SLO p90 ≤ 200 ms", "milliseconds", "offered request rate (req/s)"} <= set(drawn)
    assert "SLO far" not in drawn  # it would press the data flat
    assert CHART.beyond == ["SLO far"]


def test_in_a_page_it_has_the_pages_colours_and_as_a_file_its_own() -> None:
    root = ElementTree.fromstring(CHART.svg)  # noqa: S314 - made here
    assert root.get("aria-label") == "Time, & more"
    assert root.get("viewBox")
    assert (root.get("width"), root.get("height")) == (None, None)
    assert "var(--s0)" in CHART.svg
    assert "#" not in "".join(CHART.svg.split('"')[1::2])  # no colour of Vega's own, which would not change in the dark
    assert "var(" not in CHART.file
    assert "Time, & more" in texts(CHART.file, "text")


def test_the_data_can_be_downloaded() -> None:
    head, _, body = CHART.csv_link.partition(",")
    assert head == "data:text/csv;charset=utf-8"
    assert list(csv.DictReader(io.StringIO(unquote(body)))) == [
        {"req_per_s": "0.5", "series": "p50", "milliseconds": "3.0", "low": "", "high": ""},
        {"req_per_s": "4.0", "series": "p50", "milliseconds": "123.0", "low": "101.0", "high": "140.0"},
    ]
    assert CHART.name == "time-more"


def test_long_latencies_are_drawn_in_seconds() -> None:
    chart = latency_chart("t", [Series("p90", [Point(1, 9000.0, 8000.0, 12000.0)])], [("SLO p90 ≤ 5 s", 5000.0)])
    assert chart.rows() == [{"req_per_s": 1, "series": "p90", "seconds": 9.0, "low": 8.0, "high": 12.0}]
    assert chart.bounds == [("SLO p90 ≤ 5 s", 5.0)]


def test_a_chart_without_a_value_is_an_empty_frame() -> None:
    empty = Chart("t", "ms", [Series("p50", [])], [("SLO", 2.0)])
    assert "SLO" in texts(empty.svg, "text")
    assert empty.csv == "nothing measured\n"


def test_bars_say_their_value_and_how_far_it_may_reach() -> None:
    bars = [Bar("16K/1K|2p1d", "PD", 4.0, "4; not at 5", 5.0), Bar("16K/1K|2p1d", "aggregated", 1.5, "at least 1.5")]
    chart = Bars("Highest rate", "req/s", ("PD", "aggregated"), bars)
    assert {"4; not at 5", "at least 1.5", "16K/1K 2p1d", "PD", "aggregated"} <= set(texts(chart.svg, "text"))
    assert chart.csv.splitlines()[1:] == ['"16K/1K, 2p1d",PD,4.0,5.0', '"16K/1K, 2p1d",aggregated,1.5,']


def test_names_of_lines_that_end_together_do_not_cover_each_other() -> None:
    assert spread({"a": 10.0, "b": 1.0, "c": 10.5}, 2.0) == {"b": 1.0, "a": 10.0, "c": 12.0}


def test_the_name_of_a_line_that_ends_early_covers_no_other_line() -> None:
    lines = [Series("early", [Point(1, 3.0), Point(2, 5.0)]), Series("late", [Point(1, 2.0), Point(9, 6.0)])]
    elements = ElementTree.fromstring(Chart("t", "ms", lines).svg).iter(f"{SVG}text")  # noqa: S314 - made here
    places = {element.text: element.get("transform", "") for element in elements}
    assert places["early"].split(",")[0] == places["late"].split(",")[0] != ""
