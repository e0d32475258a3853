"""Whatever ends a load process, nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks.process import GUARD, endings_as_interrupt, run_in_group

ROOT = Path(__file__).parents[3]
# A leader with a worker, both deaf to polite signals.
STUBBORN = """
import signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if len(sys.argv) == 1:
    subprocess.Popen([sys.executable, __file__, "worker"])
open(sys.argv[1] + ".ready" if len(sys.argv) > 1 else "leader.ready", "w").close()
time.sleep(600)
"""


def alive(marker: str) -> list[int]:
    """Ids of processes whose command line holds `marker`."""
    return [p.pid for p in psutil.process_iter(["cmdline"]) if marker in " ".join(p.info["cmdline"] or [])]


def test_the_exit_code_and_output_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = run_in_group([sys.executable, "-c", "print('hello'); exit(3)"], dict(os.environ), log, lambda _: None)
    assert (code, log.read_text()) == (3, "hello\n")


def test_a_stubborn_group_is_gone_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.process.POLITE_S", 0.3)
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN, encoding="utf-8")

    def tick(_elapsed: float) -> None:
        if (tmp_path / "leader.ready").exists() and (tmp_path / "worker.ready").exists():
            assert len(alive(str(script))) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_group([sys.executable, str(script)], dict(os.environ), tmp_path / "log", tick)
    deadline = time.monotonic() + 3  # a killed worker stays listed until its new parent has collected it
    while alive(str(script)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(str(script)) == []


def test_the_group_is_ended_when_the_benchmark_itself_is_killed(tmp_path: Path) -> None:
    load = tmp_path / "load.py"
    load.write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    scratch = tmp_path / "scratch"
    (scratch / "sockets").mkdir(parents=True)
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom benchmarks.process import run_in_group\n"
        f"run_in_group([sys.executable, {str(load)!r}], dict(os.environ), Path({str(tmp_path / 'log')!r}), print, "
        f"scratch=Path({str(scratch)!r}))\n"
    )
    benchmark = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT)
    assert benchmark.stdout is not None
    benchmark.stdout.readline()  # the first tick: load and guard have been started
    benchmark.kill()
    benchmark.communicate()
    deadline = time.monotonic() + 10
    while (alive(str(load)) or scratch.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(str(load)) == []
    assert not scratch.exists()


def test_no_guard_is_left(tmp_path: Path) -> None:
    run_in_group([sys.executable, "-c", ""], dict(os.environ), tmp_path / "log", lambda _: None)
    assert [child for child in psutil.Process().children() if str(GUARD) in child.cmdline()] == []


def test_endings_become_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), endings_as_interrupt():
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with endings_as_interrupt():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_workers_left_behind_by_the_leader_are_ended(tmp_path: Path) -> None:
    script = tmp_path / "leader.py"
    script.write_text(
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', __file__])\n",
        encoding="utf-8",
    )
    assert run_in_group([sys.executable, str(script)], dict(os.environ), tmp_path / "log", lambda _: None) == 0
    assert alive(str(script)) == []
