"""The benchmark says which commit it is, and nothing rather than somebody else's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.own_commit import own_commit


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "checkout"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_text("1", encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def test_a_checkout_with_and_without_changes(checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))  # as inside a hook of another repository
    assert own_commit(checkout) == head
    (checkout / "inner" / "file").write_text("2", encoding="utf-8")
    assert own_commit(checkout) == f"{head}-dirty"


def test_no_checkout_no_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert own_commit(tmp_path) == ""
    assert own_commit(checkout / "inner") == ""  # unpacked inside another repository
    git(checkout, "update-ref", "-d", "HEAD")
    assert own_commit(checkout) == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_commit(checkout) == ""
