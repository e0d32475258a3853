"""Geometry of the report's charts: values over request rate, laid out for an SVG that the template draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# One SVG unit is one CSS pixel at full size; the drawing scales with its column.
WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 58, 62, 14, 44
# An SLO line further above the data than this would press the data flat, and is put into words instead.
HEADROOM = 3.0


@dataclass(frozen=True)
class Series:
    """One line: (request rate, value) points, rising in rate. A value that was not measured is left out."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """What to draw. `bounds` are horizontal lines (label, value); `diagonal` draws value = request rate."""

    title: str
    y_label: str
    series: Sequence[Series]
    bounds: Sequence[tuple[str, float]] = ()
    diagonal: bool = False


@dataclass(frozen=True)
class Tick:
    """A mark on an axis, `at` in SVG units."""

    at: float
    text: str


@dataclass(frozen=True)
class Dot:
    """A measured point; `hint` is its text for a pointer resting on it."""

    x: float
    y: float
    hint: str


@dataclass(frozen=True)
class Line:
    """A drawn series: its dots, the path through them, and where its name goes."""

    name: str
    dots: list[Dot]
    path: str
    label_y: float


@dataclass(frozen=True)
class Drawing:
    """A laid-out chart, in SVG units. `beyond` names bounds too far above the data to be drawn."""

    title: str
    y_label: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    bounds: list[Tick]
    beyond: list[str]
    diagonal: tuple[float, float, float, float] | None


def nice_ticks(highest: float, wanted: int = 5) -> list[float]:
    """Round tick values from 0 up to at least `highest` (greater than 0), about `wanted` of them."""
    rough = highest / wanted
    power = math.pow(10.0, math.floor(math.log10(rough)))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough * 0.999)
    return [round(index * step, 10) for index in range(math.ceil(highest / step * 0.9999) + 1)]


def layout(chart: Chart) -> Drawing:
    """Place a chart. Axes begin at 0, so that heights compare."""
    rates = [x for series in chart.series for x, _ in series.points] or [1.0]
    values = [y for series in chart.series for _, y in series.points]
    heights = [*values, *(rates if chart.diagonal else [])]
    top = max(heights) if heights else 1.0
    drawn = [(label, value) for label, value in chart.bounds if value <= HEADROOM * top]
    x_ticks = nice_ticks(max(rates))
    y_ticks = nice_ticks(max(top, *(value for _, value in drawn), 0.0))

    def x(rate: float) -> float:
        return round(LEFT + rate / x_ticks[-1] * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(HEIGHT - BOTTOM - value / y_ticks[-1] * (HEIGHT - TOP - BOTTOM), 1)

    lines: list[Line] = []
    for series in chart.series:
        dots = [Dot(x(r), y(v), f"{series.name} at {r:g} req/s: {v:.4g}") for r, v in series.points]
        path = " ".join(f"{'L' if index else 'M'}{dot.x} {dot.y}" for index, dot in enumerate(dots))
        lines.append(Line(series.name, dots, path, dots[-1].y if dots else 0.0))
    end = min(x_ticks[-1], y_ticks[-1])
    return Drawing(
        title=chart.title,
        y_label=chart.y_label,
        lines=_spread(lines),
        x_ticks=[Tick(x(value), f"{value:g}") for value in x_ticks],
        y_ticks=[Tick(y(value), f"{value:,g}") for value in y_ticks],
        bounds=[Tick(y(value), label) for label, value in drawn],
        beyond=[label for label, value in chart.bounds if (label, value) not in drawn],
        diagonal=(x(0), y(0), x(end), y(end)) if chart.diagonal else None,
    )


def _spread(lines: list[Line], gap: float = 14.0) -> list[Line]:
    """Move the names of lines that end close together apart."""
    placed: list[Line] = []
    for line in sorted(lines, key=lambda item: -item.label_y):
        ceiling = placed[-1].label_y - gap if placed else math.inf
        placed.append(Line(line.name, line.dots, line.path, min(line.label_y, ceiling)))
    return sorted(placed, key=lambda item: [line.name for line in lines].index(item.name))
