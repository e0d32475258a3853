"""`prune`: deletes what this checkout does not use, and nothing that somebody uses now."""

import fcntl
import subprocess
from pathlib import Path

import pytest
from toolchain_machine import Machine

OLD = "etcd-0123456789ab"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a control plane in use, and an older etcd and environment in the cache."""
    machine = Machine(tmp_path)
    machine.with_go()
    machine.run("ensure", "cluster")
    for folder in (f"bin/{OLD}", "envs/benchmark-0123456789ab", "uv-0.0"):
        (machine.cache / folder / "deep").mkdir(parents=True)
        (machine.cache / folder / "deep" / "file").write_bytes(bytes(3 * 1024**2))
    for folder in ("models/tiny", "engine"):
        (machine.cache / folder).mkdir(parents=True)
    return machine


def test_what_the_pins_do_not_name_is_deleted_with_its_size(machine: Machine) -> None:
    used = {machine.path(name) for name in ("etcd", "kwok", "ray-operator")}
    result = machine.run("prune")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"prune: deleted ~/cache/bin/{OLD}, 3 MiB",
        "prune: deleted ~/cache/envs/benchmark-0123456789ab, 3 MiB",
        "prune: deleted ~/cache/uv-0.0, 3 MiB",
        "prune: deleted 3 folders, 9 MiB",
    ]
    assert all(place.exists() for place in used)
    assert {place.name for place in machine.cache.iterdir()} == {"bin", "engine", "envs", "locks", "log", "models"}
    assert machine.run("prune").stdout == "prune: deleted 0 folders, 0 MiB\n"


def test_what_another_run_is_making_stays(machine: Machine) -> None:
    scratch = machine.path("etcd").parent.with_name(f"{machine.path('etcd').parent.name}.123")
    scratch.mkdir()
    with (machine.cache / "locks" / f"{scratch.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert f"kept ~/cache/bin/{scratch.name}: another run is making it" in machine.run("prune").stdout
    assert scratch.exists()
    assert f"deleted ~/cache/bin/{scratch.name}" in machine.run("prune").stdout
    assert machine.path("etcd").exists()


def test_what_a_process_runs_from_stays(machine: Machine) -> None:
    program = machine.cache / "bin" / OLD / "etcd"
    program.write_text("#!/bin/sh\nsleep 600 & echo $!\nwait\n")
    program.chmod(0o755)
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        sleeper = process.stdout.readline().strip()
        stdout = machine.run("prune").stdout
        subprocess.run(["kill", sleeper], check=True)
    assert f"kept ~/cache/bin/{OLD}: process {process.pid} runs from it" in stdout
    assert f"deleted ~/cache/bin/{OLD}" in machine.run("prune").stdout
