"""`prune`: deletes what this checkout does not use, and nothing that somebody uses now."""

import fcntl
import shutil
import subprocess
import sys
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


INTERRUPTED = """
import sys
from tools.toolchain import prune
def delete_a_file(folder):
    next(path for path in folder.rglob("*") if path.is_file()).unlink()
    sys.exit(130)
prune.shutil.rmtree = delete_a_file
prune.prune()
"""


def test_interrupted_prune_leaves_nothing_that_looks_whole_and_the_next_one_ends_it(machine: Machine) -> None:
    old = machine.cache / "bin" / OLD
    (old / "etcd").touch()
    command = [sys.executable, "-c", INTERRUPTED]
    assert subprocess.run(command, cwd=machine.root, env=machine.environment, check=False).returncode == 130
    assert not old.exists()
    assert len(list(old.parent.glob(f"{OLD}.*"))) == 1
    assert "deleted 3 folders" in machine.run("prune").stdout
    assert not list(old.parent.glob(f"{OLD}*"))


def test_linked_cache_keeps_what_a_process_runs_from(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(machine.cache)
    program = machine.cache / "bin" / OLD / "sleep"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "600"]) as process:
        stdout = machine.run("prune", PD_MI325X_CACHE=str(tmp_path / "link")).stdout
        process.kill()
    assert f"kept ~/cache/bin/{OLD}: process {process.pid} runs from it" in stdout


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
