"""The copy of the project that demo and rehearsal deploy from."""

import os
import stat
from pathlib import Path

import pytest

from tools.project_copy import ProjectCopy
from tools.toolchain.errors import ToolchainError

ROOT = Path(__file__).resolve().parents[2]
STACK = "local-agg-2"
# Does what the real one does to a stack's file; writes down which environment it has.
PULUMI = """#!/bin/sh
file=Pulumi.$4.yaml
case "$*" in
    "stack select"*) grep -q ^encryptionsalt: "$file" || echo "encryptionsalt: v1:ours" >>"$file" ;;
    *) exit 3 ;;
esac
env | grep ^PULUMI_ >"$PULUMI_HOME.env"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectCopy:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pulumi").write_text(PULUMI)
    (tmp_path / "bin" / "pulumi").chmod(0o755)
    monkeypatch.setattr("tools.toolchain.checkout.VENV", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PULUMI_STACK", "the user's")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "the user's")
    return ProjectCopy(tmp_path / "copy", "demo", "again")


def test_copy_has_the_checkouts_settings_and_keeps_its_own_salt(project: ProjectCopy) -> None:
    project.prepare(STACK)
    copy = (project.place / f"Pulumi.{STACK}.yaml").read_text()
    assert copy == (ROOT / f"Pulumi.{STACK}.yaml").read_text() + "encryptionsalt: v1:ours\n"
    project.prepare(STACK)
    assert (project.place / f"Pulumi.{STACK}.yaml").read_text() == copy
    assert stat.S_IMODE((project.place / "passphrase").stat().st_mode) == 0o600


def test_salt_of_the_users_passphrase_is_not_copied(project: ProjectCopy) -> None:
    project.prepare(STACK, "encryptionsalt: v1:the-users\nconfig:\n  a: b\n")
    assert (project.place / f"Pulumi.{STACK}.yaml").read_text() == "config:\n  a: b\nencryptionsalt: v1:ours\n"


def test_pulumi_sees_nothing_of_the_users_own(project: ProjectCopy) -> None:
    project.prepare(STACK)
    seen = (project.place / "home.env").read_text()
    assert "the user's" not in seen
    assert f"PULUMI_BACKEND_URL=file://{project.place}/backend\n" in seen
    assert f"PULUMI_CONFIG_PASSPHRASE_FILE={project.place}/passphrase\n" in seen


def test_failure_of_pulumi_is_one_line(project: ProjectCopy) -> None:
    project.prepare(STACK)
    with pytest.raises(ToolchainError, match=r"^demo: pulumi up failed \(above\); again$"):
        project.pulumi("up")


def test_an_output_that_pulumi_cannot_tell_is_one_line(project: ProjectCopy) -> None:
    project.prepare(STACK)
    with pytest.raises(ToolchainError, match=r"^demo: pulumi stack output benchmark failed \(above\); again$"):
        project.output(STACK, "benchmark")
