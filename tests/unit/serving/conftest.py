"""Fixtures: a checkout of `serving` and the stack files that a test may add stack files to, and the shell in it."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from serving_command import Render, RenderSettings

from serving.stack_files import PROJECT, ROOT


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what `python -m serving` consists of."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "serving", folder / "serving", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*ROOT.glob("Pulumi*.yaml"), ROOT / "LICENSE", ROOT / "versions.toml"):
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def render(checkout: Path) -> Render:
    """Run the command as a user does, in the copy."""

    def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "serving", "render", name, *options]
        return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def render_settings(checkout: Path, render: Render) -> RenderSettings:
    """Render a stack file with these settings; a string is the whole file."""

    def run(settings: dict[str, Any] | str, *options: str) -> subprocess.CompletedProcess[str]:
        if isinstance(settings, dict):
            settings = yaml.safe_dump({"config": {f"{PROJECT}:{key}": value for key, value in settings.items()}})
        path = checkout / "Pulumi.under-test.yaml"
        path.write_text(settings)
        try:
            return render("under-test", *options)
        finally:
            path.unlink()

    return run
