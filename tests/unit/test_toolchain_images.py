"""What builds images: compiled and installed once, by root only; and told of by `make doctor`."""

import os
from pathlib import Path

import pytest
from toolchain_machine import Machine

from tools.toolchain import image_builders
from tools.toolchain.errors import ToolchainError

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="installs packages, for which it has to be root")
PROGRAMS = ("buildkitd", "buildctl", "buildx")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One whose apt-get makes programs of the packages that it is asked for, and writes down what those are."""
    machine = Machine(tmp_path)
    machine.with_go()
    machine.program(
        "apt-get",
        f"""cd '{machine.bin}'
echo "$*" >>asked
[ "$1" = install ] || exit 0
for name; do case "$name" in runc|debootstrap) cp /bin/true "$name" ;; esac; done""",
    )
    return machine


@AS_ROOT
def test_programs_are_built_and_packages_installed_once(machine: Machine) -> None:
    done = machine.run("ensure", "image-builders")
    assert done.returncode == 0, done.stderr
    assert all(f"{name}: built in" in done.stdout for name in PROGRAMS)
    assert (machine.bin / "asked").read_text().splitlines() == [
        "update",
        "install --yes --no-install-recommends runc debootstrap",
    ]
    again = machine.run("ensure", "image-builders").stdout.splitlines()
    assert again == ["image-builders: found: buildkitd, buildctl, buildx, runc, debootstrap"]
    assert len((machine.bin / "asked").read_text().splitlines()) == 2


@AS_ROOT
def test_doctor_says_what_they_are_for(machine: Machine) -> None:
    def row() -> str:
        return next(line for line in machine.run("doctor").stdout.splitlines() if line.startswith("image builders"))

    assert "not made yet" in row()
    assert "only for tests of the images" in row()
    machine.run("ensure", "image-builders")
    assert row().endswith("ok")


@AS_ROOT
def test_without_a_package_manager_it_says_what_is_missing(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()
    (machine.system / "apt-get").unlink(missing_ok=True)
    done = machine.run("ensure", "image-builders")
    assert done.returncode == 1
    assert "no runc and no debootstrap on PATH" in done.stderr


def test_nobody_but_root_is_made_to_compile_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_builders.os, "geteuid", lambda: 1000)
    with pytest.raises(ToolchainError, match="needs root"):
        image_builders.ensure()
