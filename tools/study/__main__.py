"""`python -m tools.study`: run the studies, write their data, and draw the page from them."""

from __future__ import annotations

from typing import Annotated

import typer

from tools.study import capacity, page, reuse, same
from tools.study.capacity import Capacity
from tools.study.data import Studies, read, write
from tools.study.services import AGGREGATED, DISAGGREGATED, LEAST, MEAN_TPOT
from tools.study.truth import Truth, true_rate
from tools.toolchain.console import Stopwatch, say

ITEM = "study"
SEEDS = 20
# Every step so much faster serves about 1.3 times the rate: queues shorten as well.
FASTER = 1.19
# Windows that a reader may be tempted by.
SHORTER = (300, 1000)
SERVICES = (AGGREGATED, DISAGGREGATED)

app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    seeds: Annotated[int, typer.Option(min=3, help="searches of each service, and comparisons of each pair")] = SEEDS,
    draw: Annotated[bool, typer.Option("--draw", help="only draw the page again, from the data that is there")] = False,
) -> None:
    """Run the studies, write data and page into docs/explanation."""
    if not draw:
        write(page.DATA, run(seeds))
    page.write(read(page.DATA))


def run(seeds: int) -> Studies:
    """All of them, each told as it ends."""
    watch, numbers = Stopwatch(), range(1, seeds + 1)
    quick = same.faster(AGGREGATED, FASTER)
    truths: dict[str, Truth] = {}
    for service in (*SERVICES, quick):
        truths[service.name] = truth = true_rate(service)
        say(ITEM, f"{service.name}: true rate {truth.rate:.4g} req/s ±{truth.error:.2%}, by {truth.bound} ({watch})")
    found: list[Capacity] = []
    for window in (LEAST.measured, *SHORTER):
        for service in SERVICES:
            found.append(capacity.study(service, truths[service.name], numbers, window))
            say(ITEM, f"{service.name}, windows of {window}: {page.sentence(found[-1])} ({watch})")
    pairs: list[same.Comparisons] = []
    for number, candidate in enumerate((AGGREGATED, quick), start=1):
        others = capacity.search_all(candidate, range(number * seeds + 1, (number + 1) * seeds + 1), LEAST)
        ratio = truths[candidate.name].rate / truths[AGGREGATED.name].rate
        pairs.append(same.compare(AGGREGATED, candidate, ratio, (found[0].searches, others)))
        say(ITEM, f"{AGGREGATED.name} against {candidate.name}, {page.verdicts(pairs[-1])} ({watch})")
    both = reuse.study(AGGREGATED, [MEAN_TPOT], numbers, LEAST)
    return Studies(
        capacity=found[: len(SERVICES)],
        shorter=found[len(SERVICES) :],
        comparisons=pairs,
        reuse=both,
        seconds=round(watch.seconds),
    )


if __name__ == "__main__":
    app()
