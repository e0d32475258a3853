"""Programs that are built from Go modules, with a stand-in for Go."""

import re
import stat
import subprocess
from pathlib import Path

import pytest
from toolchain_machine import Machine, one_error_line

from tools.toolchain.versions import versions

CONTROL_PLANE = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "kwok",
    "ray-operator",
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.with_go()
    return machine


def output(program: Path) -> str:
    return subprocess.check_output([program], text=True)


def test_control_plane_is_built_once_and_each_program_has_a_path(machine: Machine) -> None:
    result = machine.run("ensure", "cluster")
    assert result.returncode == 0, result.stderr
    assert all(f"{name}: built in" in result.stdout for name in CONTROL_PLANE)
    for name in CONTROL_PLANE:
        place = machine.path(name)
        assert re.fullmatch(rf"{name}-[0-9a-f]{{12}}", place.parent.name)
        assert place.name == name
        assert output(place).startswith("build -v -trimpath")
    again = machine.run("ensure", "cluster").stdout.splitlines()
    assert len(again) == 1, again
    assert again[0].startswith("cluster: found in")
    assert sorted(folder.name.rpartition("-")[0] for folder in (machine.cache / "bin").iterdir()) == sorted(
        CONTROL_PLANE
    )


def test_kubernetes_says_the_pinned_version(machine: Machine) -> None:
    machine.run("ensure", "cluster")
    version = versions()["kubernetes"]["version"]
    flags = output(machine.path("kube-apiserver"))
    assert f"-X k8s.io/component-base/version.gitVersion=v{version} " in flags
    assert f"-X k8s.io/client-go/pkg/version.gitVersion=v{version} " in flags
    assert f"-X k8s.io/component-base/version.gitMinor={version.split('.')[1]} " in flags


def test_files_of_the_module_lie_beside_the_program(machine: Machine) -> None:
    machine.run("ensure", "cluster")
    stages = (machine.path("kwok").parent / "stages.yaml").read_text()
    names = ("node-initialize.yaml", "node-heartbeat-with-lease.yaml", "pod-delete.yaml", "pod-ready.yaml")
    assert stages.split("---\n") == [f"content of {name}\n" for name in names]
    definitions = machine.path("ray-operator").parent / "crds"
    assert sorted(file.name for file in definitions.iterdir()) == ["rayclusters.yaml", "rayservices.yaml"]
    # Can be replaced and deleted, unlike the module's.
    assert (definitions / "rayclusters.yaml").stat().st_mode & stat.S_IWUSR


def test_module_without_an_expected_file_is_named_and_leaves_no_half_program(machine: Machine) -> None:
    for file in (machine.bin / "modules" / "sigs.k8s.io" / "kwok").rglob("pod-*.yaml"):
        file.unlink()
    line = one_error_line(machine.run("ensure", "cluster"))
    assert "sigs.k8s.io/kwok has no kustomize/stage/pod/fast/*.yaml for stages.yaml" in line
    assert not list((machine.cache / "bin").glob("kwok*"))
    assert "make toolchain-cluster" in one_error_line(machine.run("path", "kwok"))


def test_failed_build_is_one_line_with_its_log(machine: Machine) -> None:
    (machine.bin / "broken").touch()
    line = one_error_line(machine.run("ensure", "cluster"))
    assert line.startswith("error: etcd: `go build` failed with exit code 1: error: does not compile; see ~/cache/log/")
    (machine.bin / "broken").unlink()
    assert machine.run("ensure", "cluster").returncode == 0


def test_without_go_the_way_out_is_named(machine: Machine) -> None:
    (machine.bin / "go").unlink()
    line = one_error_line(machine.run("ensure", "cluster"))
    assert line.startswith("error: etcd: none that suffices is here, and PATH has no Go to build it with")
    assert "go.dev/dl" in line


def test_moved_pin_makes_another_program_beside_the_old(machine: Machine) -> None:
    machine.run("ensure", "cluster")
    old = machine.path("etcd")
    with (machine.root / "tools" / "etcd" / "go.sum").open("a") as file:
        file.write("example.org/another v1.0.0 h1:\n")
    result = machine.run("ensure", "cluster")
    assert "etcd: built in" in result.stdout
    assert "kwok" not in result.stdout
    assert machine.path("etcd") != old
    assert old.exists()


def test_program_that_somebody_half_deleted_is_built_again(machine: Machine) -> None:
    machine.run("ensure", "cluster")
    place = machine.path("kwok")
    place.unlink()
    result = machine.run("ensure", "cluster")
    assert "kwok: built in" in result.stdout, result.stderr
    assert place.exists()


def test_racing_runs_build_each_program_once(machine: Machine) -> None:
    command = machine.command("ensure", "cluster")
    runs = [
        subprocess.Popen(command, cwd=machine.root, env=machine.environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = "".join(run.communicate()[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert [outputs.count(f"{name}: built in") for name in CONTROL_PLANE] == [1] * len(CONTROL_PLANE)


@pytest.mark.parametrize(("distance", "taken"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_installed_kubectl_is_taken_when_it_supports_the_pinned_kubernetes(
    machine: Machine, distance: int, taken: bool
) -> None:
    major, minor, _ = versions()["kubernetes"]["version"].split(".")
    place = machine.program("kubectl", f"echo Client Version: v{major}.{int(minor) + distance}.0")
    result = machine.run("ensure", "cluster")
    assert ("kubectl: built in" in result.stdout) == (not taken)
    assert (machine.path("kubectl") == place) == taken


def test_doctor_names_the_control_plane_and_what_needs_it(machine: Machine) -> None:
    def row() -> str:
        return next(line for line in machine.run("doctor").stdout.splitlines() if line.startswith("control plane"))

    assert "not made yet" in row()
    assert "make toolchain-cluster (compiles etcd, " in row()
    assert "only for `make rehearse` and `make test`" in row()
    machine.run("ensure", "cluster")
    assert row().endswith("ok")


def test_doctor_does_not_demand_go_for_what_may_never_be_built(machine: Machine) -> None:
    def row() -> str:
        return next(line for line in machine.run("doctor").stdout.splitlines() if line.startswith("go "))

    (machine.bin / "go").unlink()
    assert "MISSING" in row()
    machine.program("pulumi", "echo v99.0.0")
    assert "MISSING" not in row()
    assert "for `make toolchain-cluster`" in row()
