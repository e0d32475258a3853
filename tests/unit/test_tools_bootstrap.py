"""What the Makefile runs before `.venv` exists needs no package but Python's own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOTSTRAP = sorted(set(re.findall(r"\$\(BOOTSTRAP\) -m (\S+)", (ROOT / "Makefile").read_text())))
STANDARD = [*(ROOT / "tools").glob("*.py"), *(ROOT / "tools" / "toolchain").glob("*.py")]
MODULES = sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in STANDARD)


def without_packages(code: str) -> "subprocess.CompletedProcess[str]":
    """-S leaves out what is installed, -E the user's PYTHONPATH."""
    command = [sys.executable, "-S", "-E", "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_packages_are_out_of_reach_in_this_test() -> None:
    assert "No module named 'yaml'" in without_packages("import yaml").stderr


@pytest.mark.parametrize("module", MODULES)
def test_module_needs_only_the_standard_library(module: str) -> None:
    result = without_packages(f"import {module}")
    assert result.returncode == 0, result.stderr


def test_what_the_makefile_runs_is_among_them() -> None:
    assert BOOTSTRAP == ["tools.demo", "tools.stacks", "tools.toolchain"]
    assert {"tools.demo", "tools.stacks", "tools.toolchain.__main__"} <= set(MODULES)
