"""summary.json beside report.html: what the report says of a run, for programs, with a schema they can rely on.

The schema is committed as docs/reference/summary.schema.json (`make schema`). `schema_version` rises when a key goes
away or comes to mean something else; a key that is added leaves it.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from benchmarks import bootstrap
from benchmarks.answers import read_answers
from benchmarks.highest_rate import SloAnswer
from benchmarks.kept_files import damaged_files
from benchmarks.run_directory import RateResult, RunDirectory, RunInfo
from benchmarks.scenario import Scenario
from benchmarks.target import Target
from benchmarks.validity import Finding, check_run
from benchmarks.verdict import Verdict, judge_run

FILE = "summary.json"


class RunSummary(BaseModel):
    """One run. Rates are req/s, latencies ms, other times s, unless a name says otherwise.

    measured: what was measured. complete: whether all that the scenario asks for is. unfinished: rates of a sweep that
    have no result yet. slos: up to which rate each SLO is met, once the run is complete. interval_level: confidence
    of every interval. findings are of the run as a whole, each rate has its own besides.
    """

    schema_version: Literal[1] = 1
    stack: str
    run_id: str
    started: datetime
    verdict: Verdict
    complete: bool
    unfinished: list[float]
    slos: list[SloAnswer]
    interval_level: float = bootstrap.LEVEL
    findings: list[Finding]
    rates: list[RateResult]
    scenario: Scenario
    measured: Target
    made: RunInfo


def summarize_run(run: RunDirectory) -> RunSummary:
    """The summary of a run with at least one finished rate."""
    results, slos = run.results(), read_answers(run)
    findings = check_run(run.target, run.scenario, run.priming(), run.info.image, damaged_files(run))
    return RunSummary(
        stack=run.target.stack,
        run_id=run.info.run_id,
        started=run.info.started,
        verdict=judge_run(results, findings, slos),
        complete=run.complete,
        unfinished=run.unfinished,
        slos=slos,
        findings=findings,
        rates=results,
        scenario=run.scenario,
        measured=run.target,
        made=run.info,
    )


def schema() -> str:
    """The JSON schema of the file, as it is committed."""
    described = RunSummary.model_json_schema(mode="serialization")
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
