"""What all charts are: values that Vega-Lite (Altair) draws into SVG without a network, and a table to download.

Colours are CSS variables, so that one drawing serves a light page and a dark one.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from benchmarks.svg import COLOURS, finish, with_title

if TYPE_CHECKING:
    import altair as alt

# One unit is one CSS pixel where the chart's column is this wide; the drawing scales with its column.
WIDTH = 372


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


def inline(values: list[dict[str, Any]]) -> alt.Chart:
    """A chart of these rows, to be given a mark."""
    # Altair takes half a second to import, which commands that draw nothing need not wait for.
    import altair as alt

    return alt.Chart(alt.InlineData(values=values))


def configured(chart: Any) -> Any:
    """With this repository's looks. `fit` leaves room for texts that reach out of the plot."""
    import altair as alt

    text: dict[str, Any] = {"labelFontSize": 11.5, "titleFontSize": 11.5, "titleFontWeight": "normal"}
    colours = {"labelColor": COLOURS["soft"], "titleColor": COLOURS["soft"]}
    return (
        chart.configure(
            font="Liberation Sans, Arial, sans-serif",
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
            padding=alt.Padding(left=4, top=6, right=6, bottom=4),
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
