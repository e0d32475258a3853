"""What `make test` compiles while its first tests run, with a stand-in for Go that takes its time."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from toolchain_machine import Machine

from tools.toolchain.background import NICENESS


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.with_go()
    return machine


@pytest.fixture
def make() -> Iterator["subprocess.Popen[bytes]"]:
    """A process whose end ends the background run, as that of `make` does."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def compiler(machine: Machine) -> int:
    """The process id of the stand-in once it runs."""
    slow = machine.bin / "slow"
    assert within(30, lambda: slow.read_text().endswith("\n")), "no build has started"
    return int(slow.read_text())


def start(machine: Machine, pid: int, *names: str) -> "subprocess.Popen[str]":
    """`meanwhile`, with its output in pipes that the background run keeps open."""
    return subprocess.Popen(
        machine.command("meanwhile", str(pid), *names),
        cwd=machine.root,
        env=machine.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_returns_at_once_builds_at_low_priority_and_ends_with_make(
    machine: Machine, make: "subprocess.Popen[bytes]"
) -> None:
    (machine.bin / "slow").touch()
    run = start(machine, make.pid, "cluster")
    assert run.wait(30) == 0
    pid = compiler(machine)
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + NICENESS
    make.kill()  # not even reaped: `make` may be the child of a program that looks for its end later
    assert within(30, lambda: not alive(pid))
    stdout, stderr = run.communicate(timeout=30)
    assert stdout.startswith("background: making cluster at low priority")
    assert stderr == ""
    assert not list((machine.cache / "bin").glob("*"))


def test_later_ensure_waits_for_it(machine: Machine, make: "subprocess.Popen[bytes]") -> None:
    (machine.bin / "slow").touch()
    assert start(machine, make.pid, "cluster").wait(30) == 0
    pid = compiler(machine)
    (machine.bin / "slow").unlink()
    with subprocess.Popen(
        machine.command("ensure", "cluster"),
        cwd=machine.root,
        env=machine.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as later:
        assert later.stdout is not None
        assert "another run" in later.stdout.readline()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(children[0]), 15)  # the stand-in's sleep: it goes on and finishes
        rest = later.stdout.read()
        assert later.wait(60) == 0
    assert "etcd: built in" not in rest
    assert machine.path("etcd").exists()


def test_failure_is_shown_at_once_and_again_by_who_needs_it(machine: Machine, make: "subprocess.Popen[bytes]") -> None:
    (machine.bin / "broken").touch()
    stderr = start(machine, make.pid, "cluster").communicate(timeout=60)[1]
    assert stderr.startswith("error: etcd: `go build` failed")
    assert len(stderr.splitlines()) == 1
    assert machine.run("ensure", "cluster").stderr == stderr


def test_what_is_there_starts_nothing(machine: Machine, make: "subprocess.Popen[bytes]") -> None:
    machine.run("ensure", "cluster")
    assert start(machine, make.pid, "cluster").communicate(timeout=30) == ("", "")
    assert not list((machine.cache / "log").glob("background-*"))


def test_each_run_has_its_log_and_those_of_ended_runs_go(machine: Machine, make: "subprocess.Popen[bytes]") -> None:
    (machine.cache / "log").mkdir(parents=True)
    names = {"ended": "background-99999999.log", "other": f"background-{os.getpid()}.log"}
    for name in names.values():
        (machine.cache / "log" / name).touch()
    stdout = start(machine, make.pid, "cluster").communicate(timeout=60)[0]
    assert f"~/cache/log/background-{make.pid}.log" in stdout
    left = {path.name for path in (machine.cache / "log").glob("background-*")}
    assert left == {names["other"], f"background-{make.pid}.log"}


def test_what_says_more_about_its_absence_is_made_too(machine: Machine, make: "subprocess.Popen[bytes]") -> None:
    stdout, stderr = start(machine, make.pid, "benchmark").communicate(timeout=120)
    assert stdout.startswith("background: making benchmark at low priority")
    assert "Traceback" not in stderr
