"""What our language host hands to Pulumi's own executor, and what that makes of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# In a process of its own: the host replaces the package `pulumi`, and takes signals.
COMMAND = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from tools.pulumi.language_host import LanguageHost

given = json.loads(sys.argv[1])
info = SimpleNamespace(root_directory=given.pop("root_directory"), entry_point=given.pop("entry_point"))
host = LanguageHost("127.0.0.1:1", Path("executor"))
print(json.dumps(host._command(Path("python"), SimpleNamespace(info=info, **given))))
"""
# The real executor, up to where it has read its arguments.
READ = """
import argparse, json, runpy, sys

read = argparse.ArgumentParser.parse_args
def show(parser):
    print(json.dumps(vars(read(parser))))
    raise SystemExit(0)
argparse.ArgumentParser.parse_args = show
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
REQUEST: dict[str, Any] = {
    "monitor_address": "127.0.0.1:2",
    "project": "pd-mi325x",
    "stack": "pd-2p1d",
    "organization": "organization",
    "pwd": "/work",
    "dryRun": True,
    "parallel": 16,
    "args": [],
    "root_directory": "/work",
    "entry_point": "",
}


def read_by_the_executor(**changes: Any) -> dict[str, Any]:
    """The executor's arguments as it understands them."""
    command = json.loads(_python(COMMAND, json.dumps(REQUEST | changes)))
    assert command[:3] == ["python", "-u", "executor"]
    executor = Path(sys.prefix) / "bin" / "pulumi-language-python-exec"
    return json.loads(_python(READ, str(executor), *command[3:]))


def _python(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_executor_gets_what_the_engine_said() -> None:
    read = read_by_the_executor()
    expected = {"stack": "pd-2p1d", "monitor": "127.0.0.1:2", "engine": "127.0.0.1:1", "dry_run": "true"}
    assert {key: read[key] for key in expected} == expected
    assert (read["parallel"], read["PROGRAM"], read["ARGS"]) == ("16", ".", [])


@pytest.mark.parametrize("key", ["stack", "project", "organization", "pwd"])
def test_a_value_that_looks_like_an_option(key: str) -> None:
    assert read_by_the_executor(**{key: "-x"})[key] == "-x"


def test_a_program_and_arguments_that_look_like_options() -> None:
    read = read_by_the_executor(entry_point="-main", args=["--stack", "-y"])
    assert (read["PROGRAM"], read["ARGS"], read["stack"]) == ("-main", ["--stack", "-y"], "pd-2p1d")
