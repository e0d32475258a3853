"""`python -m tools.study`: run the studies, write their data, and draw the page from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tools.study import capacity, page, same
from tools.study.data import Studies, read, write
from tools.study.services import AGGREGATED, DISAGGREGATED
from tools.toolchain.console import Stopwatch, say

ITEM = "study"
SEEDS = 20
FASTER = 1.3

app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    seeds: Annotated[int, typer.Option(min=3, help="searches of each service, and comparisons of each pair")] = SEEDS,
    draw: Annotated[bool, typer.Option("--draw", help="only draw the page again, from the data that is there")] = False,
    folder: Annotated[Path | None, typer.Option(help="write data and page there instead of into docs/")] = None,
) -> None:
    """Run the studies: 20 seeds of each, as committed, take about half an hour on two cores."""
    place = folder or page.FOLDER
    if not draw:
        write(place, run(seeds))
    page.write(place, read(place))


def run(seeds: int) -> Studies:
    """All of them, each told as it ends."""
    watch, numbers = Stopwatch(), range(1, seeds + 1)
    found: list[capacity.Capacity] = []
    for service in (AGGREGATED, DISAGGREGATED):
        say(ITEM, f"{service.name}: its truth, and {seeds} searches")
        found.append(capacity.study(service, numbers))
        say(ITEM, f"{service.name}: {page.sentence(found[-1])} ({watch})")
    pairs: list[same.Comparisons] = []
    quick = same.faster(AGGREGATED, FASTER)
    for candidate, truth in ((AGGREGATED, 1.0), (quick, same.true_ratio(AGGREGATED, quick))):
        say(ITEM, f"{AGGREGATED.name} against {candidate.name}: {seeds} comparisons")
        pairs.append(same.study(AGGREGATED, candidate, truth, numbers))
        say(ITEM, f"{page.verdicts(pairs[-1])} ({watch})")
    return Studies(capacity=found, comparisons=pairs, seconds=round(watch.seconds))


if __name__ == "__main__":
    app()
