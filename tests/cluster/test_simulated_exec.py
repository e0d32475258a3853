"""The file system that a simulated pod's exec sees: this machine's, which it cannot change, and its pod's over it."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.shell import ROOT

SCRIPT = ROOT / "tools" / "rehearsal" / "pod_exec.sh"


def in_pod(files: Path, command: str, before: str = "true", **env: str) -> "subprocess.CompletedProcess[str]":
    """`command` in a pod with these files; `before` runs in the same mount namespace, before the pod is entered."""
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = ["unshare", *rights, "--mount", "sh", "-c", f'{before} && exec sh "$@"', "sh"]
    return subprocess.run(
        [*words, str(SCRIPT), str(files), "sh", "-c", command],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "files" / "results").mkdir(parents=True)
    (tmp_path / "files" / "results" / "summary.json").write_text("{}")
    return tmp_path / "files"


def test_pod_writes_into_its_own_files(files: Path) -> None:
    answer = in_pod(files, "cat /results/summary.json && echo more >/results/new && ls /tmp | wc -l")
    assert answer.stdout == "{}0\n", answer.stderr
    assert (files / "results" / "new").read_text() == "more\n"


def test_pod_cannot_change_this_machine_nor_what_is_mounted_in_it(files: Path) -> None:
    mounted = "mount -t tmpfs -o nosuid other /mnt && mkdir '/mnt/a b' && mount -t tmpfs other '/mnt/a b'"
    name = uuid.uuid4().hex
    written = "; ".join(f"touch '{folder}/{name}' && echo {folder}" for folder in ("/usr", "/mnt", "/mnt/a b"))
    answer = in_pod(files, f"{written}; echo asked", mounted)
    assert answer.stdout == "asked\n"
    assert answer.stderr.count("Read-only file system") == 3
    assert not Path("/usr", name).exists()


def test_shared_memory_is_the_pods_own(files: Path) -> None:
    name = uuid.uuid4().hex
    answer = in_pod(files, f"touch /dev/shm/{name} && ls /dev/shm && echo x >/dev/null")
    assert answer.stdout == f"{name}\n", answer.stderr
    assert not Path("/dev/shm", name).exists()


def test_no_command_runs_where_a_mount_has_failed(files: Path, tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.write_text('#!/bin/sh\ncase $2 in remount*) echo no >&2; exit 1 ;; esac\nexec /bin/mount "$@"\n')
    mount.chmod(0o755)
    answer = in_pod(files, "echo ran", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert answer.returncode != 0
    assert answer.stdout == ""
    assert answer.stderr == "no\n"
