"""docs/reference/validity.md: every kind of finding, what it means, and what it said when a test provoked it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from provoked import COMPARISON, RATE, RUN, Provoked

from benchmarks.validity import KINDS

PLACE = Path(__file__).parents[3] / "docs" / "reference" / "validity.md"
UPDATE = "PD_MI325X_UPDATE_DOCS"
_HEAD = f"""\
# Validity: every kind of finding

Written by `tests/unit/benchmarks/test_benchmark_validity_kinds.py` from the checks in `benchmarks/validity/`. The test
provokes each kind by editing a clean run (simulated or recorded), and fails when this page says something else.
`{UPDATE}=1 .venv/bin/python -m pytest tests/unit/benchmarks/test_benchmark_validity_kinds.py` writes it anew.

A finding has an `id`, an `outcome`, a `sentence` and its numbers (`evidence`). `ok`; `note`: say so when quoting the
numbers; `fault`: the numbers must not be used. A run with a fault has a red banner in its report, ends with exit code
3, and is refused by a comparison unless `--accept ID` names the finding; the comparison's report then repeats it.

Kinds with a ⁺ are shown, too, by a service that is offered more than it can serve, with nothing else wrong: its
latencies are no numbers to quote, and that the rate is too high is a result all the same. `window` and `warm-up` count
as that only where the queue or TTFT rises besides, or the rate misses its SLO. Checks whose evidence was not collected
say nothing, or a note.

No kind looks for what comes back again and again within a window: an engine that stops for two seconds every twenty,
replicas of unequal speed. That is how the service serves, and its percentiles have it.
"""


def render() -> str:
    parts = [_HEAD]
    for title, provoked in (
        ("Of each rate", RATE),
        ("Of the whole run", RUN),
        ("Between the two sides of a comparison", COMPARISON),
    ):
        parts.append(f"## {title}\n\n{_table(provoked)}\n")
    return "\n".join(parts)


def _table(provoked: Mapping[str, Provoked]) -> str:
    lines = ["| id | outcome | what it means | example |", "|---|---|---|---|"]
    for name, case in provoked.items():
        kind = KINDS[name]
        finding = kind(case.subject())
        assert finding
        mark = "⁺" if kind.overload else ""
        lines.append(f"| `{name}`{mark} | {finding.outcome} | {kind.meaning} | {finding.sentence.replace('|', '/')} |")
    return "\n".join(lines)
