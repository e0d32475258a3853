"""The page about the studies, drawn from their data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.boundary import MORE_WRONG, NEAR, REACH
from benchmarks.joint_search import CHANCE
from benchmarks.search import RUNS_AT_THE_BEGINNING, RUNS_AT_THE_END
from tools.study.capacity import Capacity
from tools.study.data import FILE, Studies
from tools.study.reuse import Reuse
from tools.study.same import Comparisons
from tools.study.services import LIMITS, MOST
from tools.study.truth import HEAD, RUNS_OF_A_STEP, STEPS, WINDOW
from tools.toolchain.versions import ROOT

DATA = ROOT / "docs" / "explanation" / "data"
PAGE = ROOT / "docs" / "explanation" / "method-study.md"
# What was asked for before anything was measured: the error, shares of the searches and comparisons, part of a grid.
ERROR, COVERED, PART_OF_GRID, SAME, DIFFERENT = 0.05, 17 / 20, 1 / 3, 19 / 20, 18 / 20
VERDICTS = ("more", "less", "no difference shown", "not known")


def write(studies: Studies) -> None:
    """Write the page."""
    PAGE.write_text(text(studies), encoding="utf-8")


def text(studies: Studies) -> str:
    """The page as Markdown."""
    parts = (_opening(studies), _searches(studies), _shorter(studies), _comparisons(studies.comparisons))
    return "\n\n".join((*parts, _reuse(studies.reuse), _RULES, _LIMITS)) + "\n"


def sentence(found: Capacity) -> str:
    """One study in a line."""
    return (
        f"within {found.within:.1%}, {found.covered} of {len(found.searches)} ranges hold the truth, at most "
        f"{max(found.parts):.0%} of a grid's requests"
    )


def verdicts(pair: Comparisons) -> str:
    """One pair in a line."""
    counts = [f"{count} {verdict}" for verdict in VERDICTS if (count := pair.count(verdict))]
    return f"true ratio {pair.truth:.3g}: " + ", ".join(counts)


def _opening(studies: Studies) -> str:
    return f"""# How far the method can be believed

<!-- Written by `make study` from data/{FILE}. Do not edit. -->

Studies on simulated services ([which](../../tools/study/services.py)), whose latencies follow a queueing model, so that
the true answer is known. They say how good the method is, and nothing about any hardware. The committed ones took
{max(1, round(studies.seconds / 60))} min on two cores (`make study`)."""


def _searches(studies: Studies) -> str:
    first = studies.capacity[0]
    truths = ", ".join(f"±{found.truth.error:.2%}" for found in studies.capacity)
    number = len(first.searches)
    bars = _bars(
        (
            (f"every search within {ERROR:.0%} of the truth", all(one.within <= ERROR for one in studies.capacity)),
            (
                f"the 90 % range holds the truth in at least {math.ceil(COVERED * number)} of {number}",
                all(one.covered >= COVERED * number for one in studies.capacity),
            ),
            (
                "every search at most a third of the grid's requests",
                all(part <= PART_OF_GRID for one in studies.capacity for part in one.parts),
            ),
            (
                "the searches of a service together at most a third of as many grids'",
                all(sum(one.parts) <= PART_OF_GRID * len(one.parts) for one in studies.capacity),
            ),
        )
    )
    return f"""## The highest rate under an SLO

Each service was searched with {number} seeds between {LIMITS.lowest:g} and {LIMITS.highest:g} req/s, knowing nothing
else, as the benchmark does it ([how](../reference/scenarios.md#search)), with at least {first.window:,} and at most
{MOST:,} requests in a window.

{_table(studies.capacity)}

{bars}

* **Truth**: of {len(STEPS) * RUNS_OF_A_STEP} runs around it, each {WINDOW:,} requests long after {HEAD:,} that are left
  out. Standard error: {truths}.
* **Off**: least and greatest error of a search, and the mean of all.
* **Grid**: steps of 2.5 % from {LIMITS.lowest:g} req/s to the first rate beyond the truth, one run each, as long as the
  search's own runs at that rate. The last column: what the searches sent of that, on average and at most; how many
  sent at most a third."""


def _shorter(studies: Studies) -> str:
    return f"""## What shorter windows cost

The same with a smaller `min_requests`. A window still grows with what the queue shows of its memory, but a short one
shows less than there is, and a high percentile of it comes out low, so that rates come out higher. The grid's runs are
as short here, which is why a search is a larger part of it.

{_table(studies.shorter)}"""


def _comparisons(pairs: Sequence[Comparisons]) -> str:
    number = len(pairs[0].ratios)
    rows = [
        f"| {pair.base} | {pair.candidate} | {pair.truth:.3g} | "
        + " | ".join(str(pair.count(verdict)) for verdict in VERDICTS)
        + f" | {_range(_estimates(pair), '{:.3g}')} |"
        for pair in pairs
    ]
    same, different = pairs
    bars = _bars(
        (
            (
                f'the same service: "no difference shown" at least {math.ceil(SAME * number)} times of {number}',
                same.count("no difference shown") >= SAME * number,
            ),
            (
                f"{different.truth:.2g} times: found at least {math.ceil(DIFFERENT * number)} times of {number}",
                different.count("more") >= DIFFERENT * number,
            ),
        )
    )
    heading = " | ".join(("base", "candidate", "true ratio", *VERDICTS, "ratios found"))
    return f"""## Two services against each other

{number} comparisons each, with a search of its own on both sides and no seed twice. A difference is called one where
the 99 % range of the ratio leaves out 1.

| {heading} |
{"|---" * 8}|
{chr(10).join(rows)}

{bars}"""


def _reuse(found: Reuse) -> str:
    first, second = (sorted(one.runs[number] for one in found.searches) for number in (0, 1))
    rates = [[rate for one in found.searches if (rate := one.rates[number])] for number in (0, 1)]
    part = sum(one.requests[1] for one in found.searches) / sum(one.requests[0] for one in found.searches)
    return f"""## One set of runs, two SLOs

A search of "{found.service}" for {", ".join(found.first)}, and then for {", ".join(found.second)}, which begins with
the runs of the first ({len(found.searches)} seeds):

| SLO | rate, median | runs, median (least to most) |
|---|---|---|
| first | {_middle(rates[0]):.3g} req/s | {_runs(first)} |
| second, besides | {_middle(rates[1]):.3g} req/s | {_runs(second)} |

The second sent {part:.0%} of the requests that the first did."""


_RULES = f"""## What a search says where there is no range

These services show none of it, so that no figure above is about it:

* **The highest rate passes**: {RUNS_AT_THE_END} times, and none fails. The answer is `met at every rate measured`, and
  a comparison takes it for at least that rate where those runs pass by more than they scatter.
* **The lowest rate fails**: {RUNS_AT_THE_BEGINNING} times, and none passes. `missed at every rate measured`.
* **An end out of reach**: one further than {math.exp(REACH):.0f} times from the estimate is open, and the answer has no
  range, as where runs do not rise with the rate, or where all that fail are far beyond the bound.
* **Not monotone**: a rate misses the SLO and a higher one meets it, and a run further than {NEAR:.0%} from the boundary
  is on its wrong side by more than runs scatter (by chance once in {1 / CHANCE:,.0f} runs). Such a service has no
  highest rate, and none is stated.
* **A knee**: latency that is flat below a rate and steep above it is no line. Where square or cube of the rate say
  more than chance, or the line's range lies beside the rates at which single runs part, the range is that of partings
  with up to {MORE_WRONG} runs more on the wrong side than the best. A unit test searches services with knees and steps,
  and asks that 80 % of the ranges hold the truth ([which](../../tests/unit/benchmarks/test_benchmark_knee.py)); a
  line's held it in fewer than half where the bound is 1.2 or 1.5 times the flat latency."""


_LIMITS = """## What this does not show

The model has no preemption, no failing hardware, no drift from hour to hour, and its lengths are all equal. A range
says how much another search of the same deployment, at the same time, may differ. How much a redeployment differs only
repeated runs tell."""


def _table(studies: Sequence[Capacity]) -> str:
    headings = ("service", "SLO", "window", "truth, req/s", "off (mean)", "ranges that hold it")
    headings = (*headings, "runs, requests (median)", "the grid's", "part of the grid")
    lines = ["| " + " | ".join(headings) + " |", "|---" * len(headings) + "|"]
    for found in studies:
        errors = found.errors
        cells = (
            found.service,
            ", ".join(found.slo),
            f"≥ {found.window:,}",
            f"{found.truth.rate:.2f}",
            f"{min(errors):+.1%} to {max(errors):+.1%} ({sum(errors) / len(errors):+.1%})",
            f"{found.covered} of {len(found.searches)}",
            f"{_middle(search.runs for search in found.searches):.0f}, "
            f"{_middle(search.requests for search in found.searches):,.0f}",
            f"{found.grid_runs}, {found.grid_requests:,}",
            f"{sum(found.parts) / len(found.parts):.0%}, ≤ {max(found.parts):.0%}; "
            f"{sum(part <= PART_OF_GRID for part in found.parts)} of {len(found.parts)}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _bars(bars: Iterable[tuple[str, bool]]) -> str:
    return "Asked for: " + "; ".join(f"{bar}: **{'met' if met else 'missed'}**" for bar, met in bars) + "."


def _estimates(pair: Comparisons) -> list[float]:
    return [item.estimate for item in pair.ratios if item.estimate is not None]


def _range(values: Sequence[float], form: str) -> str:
    return f"{form.format(min(values))} to {form.format(max(values))}" if values else "none"


def _runs(ordered: Sequence[int]) -> str:
    return f"{_middle(ordered):.0f} ({ordered[0]} to {ordered[-1]})"


def _middle(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
