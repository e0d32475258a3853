"""Which run `--resume` goes on with, and whether what it has would be measured alike today."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchmarks.errors import BenchmarkError
from benchmarks.run_directory import RunDirectory, RunInfo, open_run
from benchmarks.scenario import Scenario
from benchmarks.target import Target


def find_unfinished(results: Path, target: Target, scenario: Scenario) -> RunDirectory:
    """The latest unfinished run of the same target and scenario. Runs that cannot be read are passed over.

    Raises BenchmarkError when the stack has none, or when its latest measures something else.
    """
    runs: list[RunDirectory] = []
    unreadable: list[BenchmarkError] = []
    for path in sorted((results / target.stack).glob("*/run.json"), reverse=True):
        try:
            runs.append(open_run(path.parent))
        except BenchmarkError as error:
            unreadable.append(error)
    runs = [run for run in runs if not run.complete]
    besides = f" ({len(unreadable)} not readable, the latest: {unreadable[0]})" if unreadable else ""
    if not runs:
        raise BenchmarkError(
            f"no unfinished run of {target.stack} under {results}{besides}; start one without --resume"
        )
    for run in runs:
        if run.target == target and run.scenario == scenario:
            return run
    differing = [*_keys("target", runs[0].target, target), *_keys("scenario", runs[0].scenario, scenario)]
    raise BenchmarkError(
        f"{runs[0].path} was started with another target, scenario or rates, which differ in {', '.join(differing)}"
        f"{besides}; start a new run without --resume"
    )


def check_same_software(run: RunDirectory, now: RunInfo) -> None:
    """Raises BenchmarkError when the rates of a run were measured by other software than `now`, or of other engines."""
    begun = run.info
    differing = [
        *_versions(begun.tools, now.tools),
        *_versions({"benchmark commit": begun.commit}, {"benchmark commit": now.commit}),
        *_versions(_in_words(begun.image), _in_words(now.image)),
    ]
    if differing:
        raise BenchmarkError(
            f"{run.path} was begun with other software: {'; '.join(differing)}; "
            "go back to that, or start a new run without --resume"
        )


def _versions(begun: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """A line for each thing that is not the same."""
    names = sorted({*begun, *now})
    pairs = {name: (begun.get(name) or "unknown", now.get(name) or "unknown") for name in names}
    return [f"{name} {was} then, {is_} now" for name, (was, is_) in pairs.items() if was != is_]


def _in_words(image: Mapping[str, list[str]]) -> dict[str, str]:
    return {f"{component} in the engines' image": " and ".join(found) for component, found in image.items()}


def _keys(what: str, begun: BaseModel, now: BaseModel) -> list[str]:
    """Names of the keys whose values are not the same, such as `scenario.trace.sha256`."""
    return _differing(what, begun.model_dump(mode="json"), now.model_dump(mode="json"))


def _differing(place: str, begun: Any, now: Any) -> list[str]:
    if isinstance(begun, dict) and isinstance(now, dict):
        keys: dict[str, None] = dict.fromkeys([*begun, *now])
        return [line for key in keys for line in _differing(f"{place}.{key}", begun.get(key), now.get(key))]
    return [] if begun == now else [place]
