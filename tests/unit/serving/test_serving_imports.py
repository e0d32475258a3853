"""`serving` needs its own few dependencies and nothing else: no Pulumi, no client of anything, no engine."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, PackageNotFoundError, packages_distributions, requires

import pytest

from serving.replica.nixl_progress import DELAY_VARIABLE
from serving.stack_files import ROOT

OWN_DEPENDENCIES = {"pydantic", "pyyaml", "typer", "packaging", "jsonschema"}
# These run where Ray and vLLM are, and are tested there (tests/runtime).
ELSEWHERE = (
    *("serving.replica.callback", "serving.replica.kv_counters", "serving.replica.stack_info"),
    "serving.rehearsal_model",
)
LIST_IMPORTS = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
import serving
for module in pkgutil.walk_packages(serving.__path__, "serving."):
    if module.name not in sys.argv[1:]:
        importlib.import_module(module.name)
print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
"""


def closure(distributions: set[str]) -> set[str]:
    """Distributions with what they require, in this environment."""
    found: set[str] = set()
    waiting = list(distributions)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            required = requires(name) or ()
        except PackageNotFoundError:  # required on another platform or with an extra
            continue
        found.add(name)
        waiting += [re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0] for text in required if "extra ==" not in text]
    return found


def test_importing_everything_brings_in_only_its_own_dependencies() -> None:
    command = [sys.executable, "-c", LIST_IMPORTS, *ELSEWHERE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(json.loads(done.stdout))
    assert "serving" in imported
    owners = packages_distributions()
    foreign = {
        name: owners[name]
        for name in imported - {"serving"}
        if name in owners and not {re.sub(r"[-_.]+", "-", d).lower() for d in owners[name]} & closure(OWN_DEPENDENCIES)
    }
    assert not foreign
    assert not imported & {"infra", "benchmarks", "tools"}


def test_code_for_engine_processes_imports_nothing_else_of_ours() -> None:
    """It is loaded where only Ray and vLLM are; an import of a setting or of YAML would fail in the replica."""
    imported: set[str] = set()
    for path in (ROOT / "serving" / "replica").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    assert "serving.replica" in imported
    ours = {name for name in imported if name.split(".")[0] in {"serving", "infra", "benchmarks", "tools"}}
    assert {name for name in ours if not name.startswith("serving.replica")} == set()
    assert {name.split(".")[0] for name in imported - ours} <= {*sys.stdlib_module_names, "ray", "vllm", "nixl"}


def test_vllm_can_load_the_plugins_and_they_do_nothing_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["vllm.general_plugins"]
    monkeypatch.delenv(DELAY_VARIABLE, raising=False)
    assert plugins
    for name, target in plugins.items():
        # There is no NIXL in this environment, as there is none under this name on ROCm: looking for it would raise.
        EntryPoint(name, target, "vllm.general_plugins").load()()
