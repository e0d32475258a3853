"""Charts of horizontal bars, such as the highest rate under an SLO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.drawn import WIDTH, Drawn, configured, inline
from benchmarks.svg import COLOURS, SERIES

_ROW = 46  # height of a row of bars and the space to the next


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
        import altair as alt  # late: see benchmarks/drawn.py

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
        width = alt.X("value:Q", title=self.unit, stack=None, scale=alt.Scale(domain=[0, reach * 1.02], nice=False))
        base = inline(values)
        layers = [
            base.mark_bar(cornerRadiusEnd=2).encode(y=row, yOffset=offset, x=width, color=colour, description="hint:N"),
            base.mark_bar(opacity=0.25, cornerRadiusEnd=2).encode(
                y=row, yOffset=offset, x=alt.X("value:Q", stack=None), x2="high:Q", color=colour, description="hint:N"
            ),
            base.mark_text(align="left", dx=5, color=COLOURS["ink"]).encode(
                y=row, yOffset=offset, x=alt.X("high:Q"), text="text:N"
            ),
        ]
        return configured(alt.layer(*layers).properties(width=WIDTH, height=max(1, len(names)) * _ROW + 70))
