"""Charts of lines over the request rate, with intervals and the lines of an SLO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.drawn import WIDTH, Drawn, configured, inline
from benchmarks.svg import COLOURS, SERIES

if TYPE_CHECKING:
    import altair as alt  # elsewhere as late as possible: see benchmarks/drawn.py

_HEIGHT = 250
# An SLO line further above the data than this would press the data flat, and is put into words instead.
HEADROOM = 3.0
_LABEL_GAP = 14  # between the names of two lines, in units
_LONG_MS = 10_000


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
        import altair as alt

        bounds = [(label, value) for label, value in self.bounds if label not in self.beyond]
        last = max((p.x for line in self.series for p in line.points), default=1.0)
        right = last * 1.04
        top = max([self._highest, *(value for _, value in bounds)]) * 1.12  # room for a bound's label above its line
        x = alt.X("x:Q", title="offered request rate (req/s)", scale=alt.Scale(domain=[0, right], nice=False))
        y = alt.Y("y:Q", title=self.unit, axis=alt.Axis(format=",~f"), scale=alt.Scale(domain=[0, top], nice=False))
        layers: list[Any] = []
        for label, value in bounds:
            layers += _bound(label, value, top)
        if self.diagonal:
            ends = inline([{"x": 0, "y": 0}, {"x": min(right, top), "y": min(right, top)}])
            layers.append(ends.mark_line(color=COLOURS["soft"], strokeDash=[2, 4], strokeWidth=1.2).encode(x=x, y=y))
        ends = {line.name: line.points[-1].y for line in self.series if line.points}
        heights = spread(ends, _LABEL_GAP * top / (_HEIGHT - 60))
        for number, line in enumerate(self.series):
            if line.points:
                colour = SERIES[(number if line.colour is None else line.colour) % len(SERIES)]
                layers += _line(line, self.unit, colour, (last, heights[line.name]), x, y)
        return configured(alt.layer(*layers).properties(width=WIDTH, height=_HEIGHT))


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


def _line(line: Series, unit: str, colour: str, label_at: tuple[float, float], x: alt.X, y: alt.Y) -> list[Any]:
    """The line, its points and intervals, and its name at the right: others may go on where it ends."""
    import altair as alt

    values = [
        {"x": p.x, "y": p.y, "low": p.low, "high": p.high, "hint": _hint(line.name, unit, p)} for p in line.points
    ]
    data = inline(values)
    sure = inline([value for value in values if value["low"] is not None])
    end = inline([{"x": label_at[0], "y": label_at[1], "text": line.name}])
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
    import altair as alt

    data = inline([{"y": value, "top": top, "text": label}])
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
