"""Runs come from the volume whole, or not at all, and never over a finished one."""

import contextlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from websocket import ABNF, WebSocketConnectionClosedException

from benchmarks.errors import BenchmarkError
from benchmarks.scenario_files import find_scenario
from infra.benchmark_job import copy_runs as module
from infra.benchmark_job import pod_exec
from infra.benchmark_job.copy_runs import Copied, copy_runs
from infra.benchmark_job.pod_exec import Broken, PodOutput
from infra.benchmark_job.view import View

STACK = "pd-1p1d"
LAYOUT = {"kind": "aggregated", "topology": "agg-1", "platform": "cpu", "dummy_weights": True, "engine": {}}
REPLICAS = {"prefill": 0, "decode": 0, "aggregated": 1, "gpus": 0}
SERVICE = {"url": "http://llm:8000", "model": "m", "tokenizer": "t", "scenario": "rehearsal", "kv": None}
TARGET = {"stack": STACK, **SERVICE, "deployment": {**LAYOUT, **REPLICAS}, "versions": {}, "commit": ""}


def write_run(results: Path, run: str, rates: Sequence[float]) -> Path:
    """A run of the scenario `rehearsal` (1, 1.5 and 2 req/s) of which these rates are finished."""
    path = results / STACK / run
    for rate in rates:
        folder = path / "rates" / f"{rate:g}" / "aiperf"
        folder.mkdir(parents=True)
        (folder / "profile_export.jsonl").write_text(f'{{"rate": {rate}}}\n' * 1000, encoding="utf-8")
        (folder.parent / "summary.json").write_text("{}", encoding="utf-8")
    path.mkdir(parents=True, exist_ok=True)
    info = {"run_id": run, "started": "2026-11-30T01:00:00Z", "argv": [], "tools": {}}
    scenario = find_scenario("rehearsal").model_dump_json()
    for name, text in (("run", json.dumps(info)), ("target", json.dumps(TARGET)), ("scenario", scenario)):
        (path / f"{name}.json").write_text(text, encoding="utf-8")
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Pod:
    """Runs the reader's commands on this machine. `spoil` changes what comes out of them, a chunk of output each."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []
        self.spoil = lambda command, output: output
        self.user: Any = {}  # root here would be allowed what the pod's user is not

    def run(self, _api: object, _namespace: str, _pod: str, _container: str, command: Sequence[str]) -> bytes:
        self.commands.append(command)
        done = subprocess.run(command, capture_output=True, check=True, **self.user)
        return self.spoil(command, done.stdout)

    def output(self, *arguments: Any) -> io.BytesIO:
        return io.BytesIO(self.run(*arguments))


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    folder.mkdir()
    return folder


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch) -> Pod:
    stand_in = Pod()

    @contextlib.contextmanager
    def reader(*_: object) -> Iterator[str]:
        yield "reader-1"

    monkeypatch.setattr(module, "reader_pod", reader)
    monkeypatch.setattr(module, "run_in_pod", stand_in.run)
    monkeypatch.setattr(module, "PodOutput", stand_in.output)
    return stand_in


def copy(volume: Path, results: Path) -> Copied:
    mounts = [{"name": "results", "mountPath": str(volume)}]
    template = {"spec": {"containers": [{"name": "benchmark", "volumeMounts": mounts}]}}
    cronjob = {"spec": {"jobTemplate": {"spec": {"template": template}}}}
    jobs: Any = SimpleNamespace(api=None, place=SimpleNamespace(stack=STACK, namespace="llm"))
    with View(Console(quiet=True)) as view:
        return copy_runs(jobs, cronjob, results, view)


def test_new_runs_come_and_come_once(volume: Path, pod: Pod, tmp_path: Path) -> None:
    results = tmp_path / "results"
    there = write_run(volume, "20261130T010000Z-aaaa", [1, 1.5, 2])
    assert copy(volume, results).new == ["20261130T010000Z-aaaa"]
    assert content(results / STACK / "20261130T010000Z-aaaa") == content(there)
    assert copy(volume, results) == Copied(new=[], known=["20261130T010000Z-aaaa"])
    assert [*results.glob(".copying*")] == []


def test_a_stack_that_was_never_measured(volume: Path, pod: Pod, tmp_path: Path) -> None:
    write_run(volume.parent / "elsewhere", "run", [])
    assert copy(volume, tmp_path / "results") == Copied()


def test_a_finished_run_is_never_touched(volume: Path, pod: Pod, tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_run(volume, "a", [1, 1.5, 2])
    here = write_run(results, "a", [1, 1.5, 2])
    (here / "note").write_text("mine", encoding="utf-8")
    (volume / STACK / "a" / "run.json").write_text("{}", encoding="utf-8")
    before = content(here)
    assert copy(volume, results).new == []
    assert content(here) == before


def test_an_unfinished_run_is_replaced_once_there_is_more_of_it(volume: Path, pod: Pod, tmp_path: Path) -> None:
    results = tmp_path / "results"
    there = write_run(volume, "a", [1])
    assert copy(volume, results).new == ["a"]
    for name in ("report.html", "summary.json"):
        (there / name).write_text("written there", encoding="utf-8")
        (results / STACK / "a" / name).write_text("written here", encoding="utf-8")
    assert copy(volume, results).known == ["a"]  # the report and the summary do not count
    write_run(volume, "a", [1.5, 2])
    assert copy(volume, results).new == ["a"]
    assert content(results / STACK / "a") == content(there)


def test_a_stream_that_was_cut_off_is_asked_for_again(volume: Path, pod: Pod, tmp_path: Path) -> None:
    write_run(volume, "a", [1])
    cuts = [lambda output: output[: len(output) // 2], lambda output: b"", lambda output: output]
    pod.spoil = lambda command, output: cuts.pop(0)(output) if command[0] == "tar" else output
    assert copy(volume, tmp_path / "results").new == ["a"]
    assert cuts == []


def test_a_run_that_never_comes_whole_leaves_nothing(volume: Path, pod: Pod, tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_run(volume, "a", [1])
    pod.spoil = lambda command, output: output[:200] if command[0] == "tar" else output
    with pytest.raises(BenchmarkError, match=r"^run a did not arrive whole in 3 attempts"):
        copy(volume, results)
    assert content(results) == {}


def test_a_file_that_differs_is_noticed(volume: Path, pod: Pod, tmp_path: Path) -> None:
    there = write_run(volume, "a", [1])

    def changed_meanwhile(command: Sequence[str], output: bytes) -> bytes:
        if "sha256sum" in command:
            (there / "rates" / "1" / "summary.json").write_text("{ }", encoding="utf-8")
        return output

    pod.spoil = changed_meanwhile
    with pytest.raises(BenchmarkError, match=r"1 files differ .* rates/1/summary.json"):
        copy(volume, tmp_path / "results")


def test_an_archive_may_not_write_elsewhere(volume: Path, pod: Pod, tmp_path: Path) -> None:
    write_run(volume, "a", [1])
    evil = io.BytesIO()
    with tarfile.open(fileobj=evil, mode="w:gz") as archive:
        member = tarfile.TarInfo("../../../outside")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"evil"))
    pod.spoil = lambda command, output: evil.getvalue() if command[0] == "tar" else output
    with pytest.raises(BenchmarkError, match="did not arrive whole"):
        copy(volume, tmp_path / "results")
    assert [*tmp_path.rglob("outside")] == []


def test_what_a_file_system_keeps_for_root_is_left_alone(pod: Pod, tmp_path: Path) -> None:
    """ext4 makes lost+found at the top of a volume, and the pod's user may not look into it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are closed to other users
        volume = Path(folder)
        volume.chmod(0o755)
        write_run(volume, "a", [1, 1.5, 2])
        (volume / "lost+found").mkdir(mode=0)
        if os.getuid() == 0:
            pod.user = {"user": 65534, "group": 65534, "extra_groups": []}
        with pytest.raises(subprocess.CalledProcessError):
            pod.run(None, "", "", "", ["find", str(volume), "-name", "run.json"])
        assert copy(volume, tmp_path / "results").new == ["a"]


def test_a_name_that_is_no_run_is_left_alone(volume: Path, pod: Pod, tmp_path: Path) -> None:
    write_run(volume, ".hidden", [1])
    write_run(volume, "-rf", [1])
    assert copy(volume, tmp_path / "results") == Copied()


SUCCESS = b'\x03{"status": "Success"}'


class Socket:
    """Gives out these frames; then the connection is closed without a word."""

    def __init__(self, *frames: bytes) -> None:
        self.frames = [*frames]

    def settimeout(self, _seconds: float) -> None:
        pass

    def close(self, timeout: float) -> None:
        pass

    def recv_data_frame(self, _control: bool) -> tuple[int, Any]:
        if not self.frames:
            raise WebSocketConnectionClosedException
        return ABNF.OPCODE_BINARY, SimpleNamespace(data=self.frames.pop(0))


def received(monkeypatch: pytest.MonkeyPatch, *frames: bytes) -> PodOutput:
    monkeypatch.setattr(pod_exec.stream, "stream", lambda *_, **__: SimpleNamespace(sock=Socket(*frames)))
    monkeypatch.setattr(pod_exec.client, "ApiClient", lambda _: SimpleNamespace())
    api: Any = SimpleNamespace(configuration=None)
    return PodOutput(api, "llm", "reader-1", "reader", ["cat"])


def test_output_is_read_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    every = bytes(range(256))
    output = received(monkeypatch, b"\x01" + every, b"\x02noise", b"\x01", b"\x01" + every, SUCCESS)
    assert output.read(10) == every[:10]
    assert output.read() == every[10:] + every


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        ((b"\x01half",), "was cut off"),
        (
            (b"\x01half", b"\x02no such\nfile", b'\x03{"status": "Failure", "message": "exit 1"}'),
            "failed: no such file",
        ),
        ((b'\x03{"status": "Failure", "message": "exit 1"}',), "failed: exit 1"),
    ],
)
def test_output_that_is_not_whole_is_an_error(
    monkeypatch: pytest.MonkeyPatch, frames: tuple[bytes, ...], said: str
) -> None:
    with pytest.raises(Broken, match=said):
        received(monkeypatch, *frames).read()
