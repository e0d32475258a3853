"""Fixtures: a checkout of `serving` and the stack files that a test may add stack files to, and the shell in it."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from serving_command import Render, RenderSettings

import serving.__main__ as command
from serving import stack_files
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
def render(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Render:
    """The command's own main function on the copy's stack files. As a user starts it: test_the_command_as_typed."""
    monkeypatch.setattr(stack_files, "ROOT", checkout)

    def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = command.main(["render", name, *options])
        said = capsys.readouterr()
        return subprocess.CompletedProcess([name, *options], code, said.out, said.err)

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
