"""A stand-in for infra/campaign/measure.py, copied over it in a test's checkout: nothing is measured.

It makes a run's folder as the real one does and takes as long as a test says, in `control.json` beside Pulumi.yaml:
seconds (till it ends), fail (a problem instead of a run), faults (of the finished run), pids (kept by it: of whoever
measured). `measured` there lists what was measured, in order.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.errors import BenchmarkError
from benchmarks.run_directory import RunDirectory, RunInfo, create, new_run_id, open_run
from benchmarks.scenario_files import find_scenario
from benchmarks.target import parse_target

_CONTROL = Path("control.json")


@dataclass(frozen=True)
class Wish:
    results: Path
    scenario: str | None
    rates: str | None


@dataclass(frozen=True)
class Begun:
    run: Path | None


def measure(
    outputs: dict[str, Any], wish: Wish, console: Console, begun: Begun | None, began: Callable[[RunDirectory], None]
) -> RunDirectory:
    target = parse_target(json.dumps(outputs["benchmark"]), "of the stack")
    scenario = find_scenario(wish.scenario or target.scenario).at(wish.rates)
    if begun is not None and begun.run is not None:
        run = open_run(begun.run)
    else:
        now = datetime.now(UTC)
        info = RunInfo(run_id=new_run_id(now), started=now, argv=[], tools={})
        run = create(wish.results, info, target, scenario)
    began(run)
    with Path("measured").open("a") as file:
        print(target.stack, run.path.name, os.getpid(), file=file)
    console.print("the stand-in measures")
    start = time.monotonic()
    while time.monotonic() - start < _control().get("seconds", 0):
        time.sleep(0.05)
    if problem := _control().get("fail"):
        raise BenchmarkError(problem)
    return run


def judge(_run: RunDirectory) -> list[str]:
    return _control().get("faults", [])


def _control() -> dict[str, Any]:
    return json.loads(_CONTROL.read_text())
