"""The charts of reports and figures: what they say as values, drawn by Vega-Lite (Altair) into SVG without a network.

Colours are CSS variables with a fallback, so that one drawing serves a light page, a dark one, and a file of its own.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote

import altair as alt

from benchmarks.svg import COLOURS, SERIES, finish, with_title

# One unit is one CSS pixel where the chart's column is this wide; the drawing scales with its column.
WIDTH, HEIGHT = 372, 250
# An SLO line further above the data than this would press the data flat, and is put into words instead.
HEADROOM = 3.0
_LABEL_GAP = 14  # between the names of two lines, in units
_LONG_MS = 10_000
_LETTER = 6.6  # width of one in a line's name, on average
_ROW = 46  # of a bar chart: a group of bars and the space to the next


@dataclass(frozen=True)
class Point:
    """A value over a request rate; `low` and `high` are its interval, where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """One line: points rising in x. A value that was not measured is left out. `colour`: None takes the next."""

    name: str
    points: Sequence[Point]
    colour: int | None = None
    dashed: bool = False


class Drawn(ABC):
    """A chart that can be drawn, and downloaded as a table. `below` stands under the title where it is a file."""

    title: str
    below: str

    @abstractmethod
    def specification(self) -> Any:
        """The Vega-Lite chart."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """What is drawn, as a table: one dictionary a line, all with the same keys."""

    @property
    def beyond(self) -> list[str]:
        """What lies too far out to be drawn, in words."""
        return []

    @cached_property
    def svg(self) -> str:
        """An <svg> element for a page that defines the colours."""
        return finish(_rendered(self.specification()), self.title)

    @cached_property
    def file(self) -> str:
        """The same as a file of its own: light, with its title."""
        return with_title(self.svg, self.title, self.below)

    @cached_property
    def csv(self) -> str:
        """The table as CSV with a heading."""
        rows, text = self.rows(), io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["nothing measured"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    @property
    def csv_link(self) -> str:
        """The table as the address of a link."""
        return "data:text/csv;charset=utf-8," + quote(self.csv)

    @property
    def name(self) -> str:
        """The title as a file name without ending."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


@dataclass(frozen=True)
class Chart(Drawn):
    """Lines over the offered request rate.

    `bounds` are horizontal lines (label, value); `diagonal` draws y = x.
    """

    title: str
    unit: str
    series: Sequence[Series]
    bounds: Sequence[tuple[str, float]] = ()
    diagonal: bool = False
    below: str = ""

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"req_per_s": p.x, "series": line.name, self.unit: p.y, "low": p.low, "high": p.high}
            for line in self.series
            for p in line.points
        ]

    @property
    def beyond(self) -> list[str]:
        return [label for label, value in self.bounds if value > HEADROOM * self._highest]

    @property
    def _highest(self) -> float:
        points = [p for line in self.series for p in line.points]
        heights = [p.y if p.high is None else max(p.y, p.high) for p in points]
        if self.diagonal:
            heights += [p.x for p in points]
        return max(heights, default=1.0) or 1.0

    def specification(self) -> Any:
        bounds = [(label, value) for label, value in self.bounds if label not in self.beyond]
        right = max((p.x for line in self.series for p in line.points), default=1.0) * 1.04
        top = max([self._highest, *(value for _, value in bounds)]) * 1.12  # room for a bound's label above its line
        x = alt.X("x:Q", title="offered request rate (req/s)", scale=alt.Scale(domain=[0, right], nice=False))
        y = alt.Y("y:Q", title=self.unit, axis=alt.Axis(format=",~f"), scale=alt.Scale(domain=[0, top], nice=False))
        layers: list[Any] = []
        for label, value in bounds:
            layers += _bound(label, value, top)
        if self.diagonal:
            ends = _data([{"x": 0, "y": 0}, {"x": min(right, top), "y": min(right, top)}])
            layers.append(ends.mark_line(color=COLOURS["soft"], strokeDash=[2, 4], strokeWidth=1.2).encode(x=x, y=y))
        ends = {line.name: line.points[-1].y for line in self.series if line.points}
        heights = spread(ends, _LABEL_GAP * top / (HEIGHT - 60))
        for number, line in enumerate(self.series):
            if line.points:
                colour = SERIES[(number if line.colour is None else line.colour) % len(SERIES)]
                layers += _line(line, self.unit, colour, heights[line.name], x, y)
        return _configured(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT), names=heights)


@dataclass(frozen=True)
class Bar:
    """One bar of a row. `high`: up to where the truth may lie, where that is known; `text` stands at its end."""

    row: str
    group: str
    value: float
    text: str
    high: float | None = None


@dataclass(frozen=True)
class Bars(Drawn):
    """Rows of horizontal bars, one for each group that was measured, in the order given.

    A `|` in a row's name breaks its line.
    """

    title: str
    unit: str
    groups: Sequence[str]
    bars: Sequence[Bar]
    below: str = ""

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"row": bar.row.replace("|", ", "), "group": bar.group, self.unit: bar.value, "up_to": bar.high}
            for bar in self.bars
        ]

    def specification(self) -> Any:
        names = list(dict.fromkeys(bar.row for bar in self.bars))
        reach = max((bar.high or bar.value for bar in self.bars), default=1.0) or 1.0
        values = [
            {
                "row": bar.row,
                "group": bar.group,
                "value": bar.value,
                "high": bar.high if bar.high is not None else bar.value,
                "text": bar.text,
                "hint": f"{bar.row.replace('|', ', ')}, {bar.group}: {bar.text}",
            }
            for bar in self.bars
        ]
        row = alt.Y(
            "row:N",
            sort=names,
            title=None,
            axis=alt.Axis(labelExpr="split(datum.label, '|')", labelLimit=170, domain=False),
        )
        offset = alt.YOffset("group:N", sort=list(self.groups), scale=alt.Scale(paddingInner=0.2))
        colour = alt.Color(
            "group:N",
            sort=list(self.groups),
            scale=alt.Scale(domain=list(self.groups), range=list(SERIES[: len(self.groups)])),
            legend=alt.Legend(title=None, orient="top", symbolType="square", symbolOpacity=1),
        )
        # Not stacked: stacked bars with round ends need clip paths, whose names would meet in a page of many charts.
        width = alt.X("value:Q", title=self.unit, stack=None, scale=alt.Scale(domain=[0, reach * 1.25], nice=False))
        base = _data(values)
        layers = [
            base.mark_bar(cornerRadiusEnd=2).encode(y=row, yOffset=offset, x=width, color=colour, description="hint:N"),
            base.mark_bar(opacity=0.25, cornerRadiusEnd=2).encode(
                y=row, yOffset=offset, x=alt.X("value:Q", stack=None), x2="high:Q", color=colour, description="hint:N"
            ),
            base.mark_text(align="left", dx=5, color=COLOURS["ink"]).encode(
                y=row, yOffset=offset, x=alt.X("high:Q"), text="text:N"
            ),
        ]
        return _configured(alt.layer(*layers).properties(width=WIDTH, height=max(1, len(names)) * _ROW + 70))


def latency_chart(
    title: str, series: Sequence[Series], bounds: Sequence[tuple[str, float]] = (), below: str = ""
) -> Chart:
    """A chart of latencies in milliseconds, drawn in seconds where they are long."""
    ends = [end for line in series for p in line.points for end in (p.y, p.high) if end is not None]
    if max(ends, default=0.0) < _LONG_MS:
        return Chart(title, "milliseconds", series, bounds, below=below)
    in_seconds = [replace(line, points=[_divided(p, 1000) for p in line.points]) for line in series]
    return Chart(title, "seconds", in_seconds, [(label, value / 1000) for label, value in bounds], below=below)


def _divided(point: Point, by: float) -> Point:
    low, high = (None if end is None else end / by for end in (point.low, point.high))
    return Point(point.x, point.y / by, low, high)


def spread(ends: dict[str, float], gap: float) -> dict[str, float]:
    """Where the names of lines go that end at these heights: not lower, and at least `gap` from each other."""
    placed: dict[str, float] = {}
    lowest = float("-inf")
    for name, height in sorted(ends.items(), key=lambda item: item[1]):
        placed[name] = max(height, lowest)
        lowest = placed[name] + gap
    return placed


def _line(line: Series, unit: str, colour: str, label_at: float, x: alt.X, y: alt.Y) -> list[Any]:
    values = [
        {"x": p.x, "y": p.y, "low": p.low, "high": p.high, "hint": _hint(line.name, unit, p)} for p in line.points
    ]
    data = _data(values)
    sure = _data([value for value in values if value["low"] is not None])
    end = _data([{"x": line.points[-1].x, "y": label_at, "text": line.name}])
    return [
        sure.mark_rule(color=colour, opacity=0.28, strokeWidth=7, strokeCap="round").encode(
            x=x, y=alt.Y("low:Q"), y2="high:Q"
        ),
        data.mark_line(color=colour, strokeWidth=2, strokeDash=[4, 3] if line.dashed else [1, 0]).encode(x=x, y=y),
        data.mark_point(filled=True, color=colour, size=44, opacity=1, stroke=COLOURS["card"], strokeWidth=1.2).encode(
            x=x, y=y, description="hint:N"
        ),
        end.mark_text(align="left", dx=9, color=colour, fontWeight=600).encode(x=x, y=y, text="text:N"),
    ]


def _bound(label: str, value: float, top: float) -> list[Any]:
    """The SLO's line, its name, and a tint over what misses it."""
    data = _data([{"y": value, "top": top, "text": label}])
    at = alt.Y("y:Q")
    return [
        data.mark_rect(color=COLOURS["fault"], opacity=0.07).encode(y=at, y2="top:Q"),
        data.mark_rule(color=COLOURS["fault"], strokeDash=[5, 4]).encode(y=at),
        data.mark_text(align="left", baseline="bottom", dx=5, dy=-3, color=COLOURS["fault"]).encode(
            y=at, x=alt.value(0), text="text:N"
        ),
    ]


def _hint(name: str, unit: str, point: Point) -> str:
    interval = f" [{point.low:.4g} to {point.high:.4g}]" if point.low is not None and point.high is not None else ""
    return f"{name} at {point.x:g} req/s: {point.y:.4g} {unit}{interval}"


def _data(values: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=values))


def _configured(chart: Any, names: Collection[str] = ()) -> Any:
    """With this repository's looks, and room on the right for `names` at the ends of lines."""
    room = 12 + _LETTER * max(map(len, names), default=0)
    text: dict[str, Any] = {"labelFontSize": 11.5, "titleFontSize": 11.5, "titleFontWeight": "normal"}
    colours = {"labelColor": COLOURS["soft"], "titleColor": COLOURS["soft"]}
    return (
        chart.configure(
            font="Liberation Sans, Arial, sans-serif",
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
            padding=alt.Padding(left=4, top=6, right=room, bottom=4),
            background="transparent",
        )
        .configure_view(stroke=None)
        .configure_text(fontSize=11.5)
        .configure_axis(
            gridColor=COLOURS["line"], domainColor=COLOURS["soft"], tickColor=COLOURS["soft"], **text, **colours
        )
        .configure_axisX(grid=False, tickCount=6, format=",~f")
        .configure_axisY(ticks=False, domain=False, tickCount=5, labelPadding=6)
        .configure_legend(labelColor=COLOURS["ink"], labelFontSize=11.5)
    )


def _rendered(chart: Any) -> str:
    text = io.StringIO()
    chart.save(text, format="svg")
    return text.getvalue()
