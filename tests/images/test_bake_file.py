"""docker-bake.hcl and its second file, as buildx itself reads the two: nothing is built."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from serving.image_arguments import image_target
from tests.shell import ROOT
from tools.image_builder import arguments
from tools.toolchain import go_install, go_programs


@pytest.fixture(scope="module")
def buildx() -> Path:
    (program,) = [program for program in go_programs.image_builders() if program.name == "buildx"]
    return go_install.ensure(program)


def printed(buildx: Path, folder: Path, *, second_file: bool) -> "subprocess.CompletedProcess[str]":
    file = folder / "arguments.json"
    file.write_text(json.dumps(arguments.bake_file()))
    files = ["--file", "docker/docker-bake.hcl", *(["--file", str(file)] if second_file else [])]
    command = [buildx, "bake", "--print", *files, "rocm", "rocm-debug", "cpu", "benchmark"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["rocm", "cpu", "benchmark"])
def test_every_argument_of_an_image_resolves_and_pulumi_builds_the_same(
    name: str, buildx: Path, tmp_path: Path
) -> None:
    done = printed(buildx, tmp_path, second_file=True)
    assert done.returncode == 0, done.stderr
    target: dict[str, Any] = json.loads(done.stdout)["target"][name]
    expected = image_target(name)
    assert target["args"] == expected.arguments
    assert target["dockerfile"] == expected.dockerfile
    assert target["target"] == expected.stage
    assert target["tags"] == [f"pd-mi325x/{expected.repository}:local"]


def test_without_the_second_file_it_says_what_is_missing(buildx: Path, tmp_path: Path) -> None:
    done = printed(buildx, tmp_path, second_file=False)
    assert done.returncode != 0
    assert "rocm-arguments" in done.stderr
