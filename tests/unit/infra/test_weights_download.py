"""The program of the download Job against a stand-in hub, with the huggingface_hub of the benchmark environment.

It runs as in the pod: a process of its own, of which exit code, log and directory are looked at.
"""

import os
import subprocess
from pathlib import Path
from typing import Any, Protocol

import pytest
from stand_in_hub import COMMIT, OTHER_COMMIT, REPOSITORY, Hub, stand_in_hub

from tests.shell import ROOT
from tools.toolchain.items import path

SHARD = "model-00001-of-00001.safetensors"
# Larger than two of the client's chunks of 10 MB: what it has not a whole chunk of, it throws away.
FILES = {"config.json": b"{}", SHARD: b"0123456789" * 2_400_000, "sub/tokenizer.json": b"[1]"}


class Download(Protocol):
    def __call__(
        self, hub: Hub, revision: str = COMMIT, *, directory: str = "", patience: int = 0, **env: str
    ) -> "subprocess.CompletedProcess[str]": ...


@pytest.fixture(scope="session")
def python() -> Path:
    """The benchmark image, in which the Job runs, is made from the same locked requirements."""
    return path("benchmark") / "bin" / "python"


@pytest.fixture
def download(python: Path, tmp_path: Path) -> Download:
    usual = tmp_path / "models" / "owner--model" / COMMIT

    def run(
        hub: Hub, revision: str = COMMIT, *, directory: str = "", patience: int = 0, **env: str
    ) -> "subprocess.CompletedProcess[str]":
        # Only what the pod has; the proxy of this machine must not be asked for 127.0.0.1.
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "HF_ENDPOINT": hub.url,
            "NO_PROXY": "*",
        } | env
        words = [REPOSITORY, "--revision", revision, "--directory", directory or str(usual)]
        command = [str(python), "-m", "serving.weights_download", *words, "--patience", str(patience)]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The one that is filled when a test names none."""
    return tmp_path / "models" / "owner--model" / COMMIT


def content(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and ".cache" not in path.parts)
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_everything_is_fetched_and_then_marked(download: Download, directory: Path) -> None:
    with stand_in_hub(files=FILES) as hub:
        done = download(hub)
    assert done.returncode == 0, done.stderr
    assert content(directory) == FILES | {".complete": f"{COMMIT}\n".encode()}
    assert "Traceback" not in done.stderr


def test_a_complete_directory_needs_no_hub(download: Download, directory: Path) -> None:
    directory.mkdir(parents=True)
    (directory / ".complete").write_text(f"{COMMIT}\n")
    with stand_in_hub(files=FILES) as hub:
        assert download(hub).returncode == 0
        assert hub.asked == []


def test_the_marker_of_another_commit_does_not_count(download: Download, directory: Path) -> None:
    directory.mkdir(parents=True)
    (directory / ".complete").write_text(f"{OTHER_COMMIT}\n")
    with stand_in_hub(files=FILES) as hub:
        assert download(hub).returncode == 0
    assert content(directory) == FILES | {".complete": f"{COMMIT}\n".encode()}


def test_a_broken_connection_goes_on_where_it_stopped(download: Download, directory: Path) -> None:
    with stand_in_hub(files=FILES, cut={SHARD: 21_000_000}) as hub:
        done = download(hub, patience=20)
        assert done.returncode == 0, done.stderr
        (resumed,) = hub.ranges
        assert int(resumed.split("bytes=")[1].split("-")[0]) >= 10_000_000
    assert content(directory)[SHARD] == FILES[SHARD]


@pytest.mark.parametrize("damage", [b"short", None], ids=["truncated", "missing"])
def test_a_damaged_file_is_fetched_again(download: Download, directory: Path, damage: bytes | None) -> None:
    with stand_in_hub(files=FILES) as hub:
        download(hub)
        (directory / ".complete").unlink()
        (directory / SHARD).unlink()
        if damage:
            (directory / SHARD).write_bytes(damage)
        assert download(hub).returncode == 0
    assert content(directory)[SHARD] == FILES[SHARD]


def test_a_file_shorter_than_the_hub_says_is_never_marked_complete(download: Download, directory: Path) -> None:
    with stand_in_hub(files=FILES, listed={SHARD: len(FILES[SHARD]) + 1}) as hub:
        done = download(hub)
    assert done.returncode == 1
    assert SHARD in done.stderr
    assert not (directory / ".complete").exists()


@pytest.mark.parametrize(
    ("settings", "revision", "said"),
    [
        ({"token": "right"}, COMMIT, "Cannot access gated repo"),
        ({}, OTHER_COMMIT, "Revision Not Found"),
        ({}, "main", f"'main' is not a commit; weights.revision: {COMMIT}"),
    ],
    ids=["token", "commit", "branch"],
)
def test_what_no_later_try_changes_ends_at_once(
    download: Download, directory: Path, settings: dict[str, Any], revision: str, said: str
) -> None:
    with stand_in_hub(files=FILES, **settings) as hub:
        done = download(hub, revision, patience=60, HF_TOKEN="wrong")
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    assert not directory.exists()


def test_a_hub_that_is_away_for_a_while_is_waited_for(download: Download, directory: Path) -> None:
    with stand_in_hub(files=FILES, unavailable=2) as hub:
        done = download(hub, patience=30)
    assert done.returncode == 0, done.stderr
    assert "503" in done.stderr
    assert (directory / ".complete").exists()


def test_patience_ends(download: Download) -> None:
    with stand_in_hub(files=FILES, unavailable=1000) as hub:
        done = download(hub, patience=3)
    assert done.returncode == 1
    assert "503" in done.stderr.splitlines()[-1]


def test_the_token_is_used_and_never_shown(download: Download) -> None:
    with stand_in_hub(files=FILES, token="hf_secret") as hub:
        done = download(hub, HF_TOKEN="hf_secret")
    assert done.returncode == 0, done.stderr
    assert "hf_secret" not in done.stderr + done.stdout


def test_a_directory_that_may_not_be_written_ends_at_once(download: Download) -> None:
    with stand_in_hub(files=FILES) as hub:
        done = download(hub, directory="/sys/pd-mi325x", patience=60)  # refuses even root
    assert done.returncode == 1
    assert "/sys/pd-mi325x" in done.stderr.splitlines()[-1]
    assert done.stderr.count("error:") == 1
