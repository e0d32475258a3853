"""docs/explanation/client-ceiling.md, from the study's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.client_ceiling import ANSWER_MS, NEAR, PROMPT_MS, REQUEST_MS

_HEADINGS = (
    "offered req/s",
    "sent req/s",
    "late p50 / p90 / max ms",
    "added to TTFT p50 / p90 ms",
    "server late p90 ms",
    "CPU ms a request",
    "others' cores",
    "keeps up",
)


def write(data: Mapping[str, Any]) -> str:
    """The page."""
    conditions = data["conditions"]
    parts = [_opening(conditions, data["shapes"]), _summary(data["shapes"])]
    for shape in data["shapes"]:
        parts.append(f"## {shape['isl']:,} tokens in, {shape['osl']} out\n\n" + _table(shape["rows"]))
    return "\n\n".join([*parts, _meaning(conditions), _warning()]) + "\n"


def ceiling(rows: Sequence[Mapping[str, Any]]) -> tuple[float | None, float | None]:
    """(highest rate below all that the client did not keep up with, lowest that it did not), in req/s.

    That it kept up with a higher one as well is luck: of other work, or of few requests.
    """
    failed = min((row["offered"] for row in rows if not row["keeps_up"]), default=None)
    kept = [row["offered"] for row in rows if failed is None or row["offered"] < failed]
    return max(kept, default=None), failed


def cpu_per_request(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The client's CPU milliseconds for a request at the highest rate where it could be told; None where at none.

    At low rates what AIPerf takes while it waits counts for more.
    """
    known = [(row["offered"], row["cpu"]) for row in rows if row["cpu"]]
    return max(known)[1] if known else None


def _opening(conditions: Mapping[str, Any], shapes: Sequence[Mapping[str, Any]]) -> str:
    others = [row["others"] for shape in shapes for row in shape["rows"]]
    return f"""# What the client can offer, and what it adds

<!-- Written by `python -m tools.study.client_ceiling` from data/client-ceiling.json. Do not edit. -->

A load generator that is late measures itself. Here AIPerf {conditions["aiperf"]}, started by `python -m benchmarks run`
with one worker (half of {conditions["cores"]} cores), asks a [simulated server](../reference/simulated-server.md) whose
engine writes a token every 2 ms whatever the load. Measured on {conditions["date"]} in {conditions["minutes"]:g} min
on {conditions["cores"]} cores ({conditions["processor"]}, Python {conditions["python"]}), with the server on the same
cores. Everything else on the machine took {min(others):.1f} to {max(others):.1f} cores meanwhile (last column but
one); what it takes makes the rates lower bounds.
A token of a prompt is {conditions["bytes_per_token"]} bytes, as in English."""


def _summary(shapes: Sequence[Mapping[str, Any]]) -> str:
    headings = ("ISL/OSL", "kept up with", "not with", "client's CPU per request", "so one core is")
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for shape in shapes:
        highest, above = ceiling(shape["rows"])
        cost = cpu_per_request(shape["rows"])
        load = f"{shape['isl']:,}/{shape['osl']}"
        figures = f"{cost:.1f} ms | {1000 / cost:.0f} req/s" if cost else "– | –"
        lines.append(f"| {load} | {_rate(highest)} | {_rate(above)} | {figures} |")
    return "\n".join(lines)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + "---|" * len(_HEADINGS)]
    for row in rows:
        cells = (
            f"{row['offered']:g}",
            f"{row['achieved']:.1f}" + (f", {row['failed']} of {row['requests']} failed" if row["failed"] else ""),
            " / ".join(f"{row[name]:.1f}" for name in ("late_p50", "late_p90", "late_max")),
            f"{row['added_p50']:.1f} / {row['added_p90']:.1f}",
            f"{row['server_late_p90']:.1f}",
            f"{row['cpu']:.1f}" if row["cpu"] else "–",
            f"{row['others']:.1f}",
            "yes" if row["keeps_up"] else "no",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _meaning(conditions: Mapping[str, Any]) -> str:
    return f"""## How to read it

* **late**: from the moment AIPerf's timing issues a request to the moment its worker sends it. Arrivals that are late
  are no longer the Poisson process that was asked for. That the timing itself is late is not recorded; it shows in the
  rate that was sent.
* **added to TTFT**: what AIPerf reports less what the server measured from a request's headers to its first token. It
  is connection, loopback and the client's own event loop, and it is in every TTFT the benchmark reports.
* **server late**: how much later than its model the server wrote first tokens. Where this is large, the machine and not
  AIPerf was the limit.
* **CPU a request**: of all AIPerf processes together, while requests are sent and answered; start-up and the making of
  prompts are not in it. At low rates it includes much of what AIPerf takes while it waits, so the table above has that
  of the highest rate. It depends less on other work than the rates do, and bounds what a client can do with its cores.
* **others' cores**: what everything else on the machine took meanwhile, on average.
* **keeps up**: p90 lateness of at most {conditions["late_ms"]:g} ms, at least 95 % of the rate (less three standard
  errors of as many Poisson arrivals), and no request failed."""


def _warning() -> str:
    return f"""## The benchmark's warning

Before it sends a rate, the benchmark works out what the load will take: {REQUEST_MS:g} ms of CPU for a request,
{PROMPT_MS:g} ms for each 1,000 tokens of its prompt and {ANSWER_MS:g} ms for each 100 of its answer, from the tables
above ([constants](../../benchmarks/client_ceiling.py)). AIPerf has a worker for every two cores of the machine, at most
8 of them, and a worker can use one core. Where the load takes more than {100 * NEAR:.0f} % of the workers' cores, every
line of progress says so, and the rate keeps the note `client-ceiling`. Measure from a machine with more cores then.

The warning knows nothing of other work on the machine, which can make a client late at far lower rates. What really
happened, `client-late` and `client-cpu` say ([all findings](../reference/validity.md))."""


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:g} req/s"
