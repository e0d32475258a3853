"""Scenarios as they are written down: scenarios.yaml, or a file of the user's, or JSON on a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchmarks import strict_json, strict_yaml
from benchmarks.errors import BenchmarkError, first_problem, place_of
from benchmarks.scenario import Scenario

SCENARIOS_FILE = Path(__file__).with_name("scenarios.yaml")


def load_scenarios(path: Path = SCENARIOS_FILE) -> dict[str, Scenario]:
    """All scenarios of a file, by name. Raises BenchmarkError naming the scenario and the key at fault."""
    try:
        read = strict_yaml.Document(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, strict_yaml.NotYamlError) as error:
        raise BenchmarkError(
            f"cannot read scenarios from {path}: {getattr(error, 'strerror', None) or error}"
        ) from None
    if not isinstance(read.data, dict) or not all(isinstance(body, dict) for body in read.data.values()):
        raise BenchmarkError(f"{path}: expected a mapping of scenario names to settings")
    raw: dict[Any, dict[Any, Any]] = read.data
    scenarios: dict[str, Scenario] = {}
    for name, body in raw.items():
        where = f"scenario {name}"
        if body.get("name", name) != name:
            raise BenchmarkError(
                f"{path}, line {read.line([name, 'name'])}: {where}: name: leave it out, the key names it"
            )
        try:
            scenario = Scenario.model_validate({"name": name, **body})
        except ValidationError as error:
            line = read.line([name, *place_of(error.errors()[0]["loc"], body)])
            raise BenchmarkError(f"{path}, line {line}: {where}: {first_problem(error, Scenario, body)}") from None
        if scenario.trace is not None:
            file = str((path.parent / scenario.trace.file).resolve())
            scenario = scenario.model_copy(update={"trace": scenario.trace.model_copy(update={"file": file})})
        scenarios[name] = scenario
    return scenarios


def find_scenario(name: str, path: Path = SCENARIOS_FILE) -> Scenario:
    """One scenario by name. Raises BenchmarkError listing what there is."""
    scenarios = load_scenarios(path)
    if name not in scenarios:
        known = ", ".join(sorted(scenarios))
        raise BenchmarkError(f"no scenario called {name!r} in {path.name}; there are: {known}")
    return scenarios[name]


def parse_scenario(text: str) -> Scenario:
    """A scenario from JSON, its name included. Raises BenchmarkError."""
    data: Any = None
    try:
        data = strict_json.loads(text)
        return Scenario.model_validate(data)
    except strict_json.NotJsonError as error:
        raise BenchmarkError(f"--scenario-json: not JSON ({error.problem})") from None
    except ValidationError as error:
        raise BenchmarkError(f"--scenario-json: {first_problem(error, Scenario, data)}") from None
