"""The browser for tests of the report: found on PATH, installed by root on Debian, or one line that says what to do."""

import os
from pathlib import Path

import pytest
from toolchain_machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("name", ["chromium", "google-chrome"])
def test_one_on_path_is_taken(machine: Machine, name: str) -> None:
    machine.program(name, "true")
    assert machine.run("ensure", "chromium").stdout.splitlines() == [f"chromium: found {machine.bin / name}"]
    assert machine.run("path", "chromium").stdout.strip() == str(machine.bin / name)


@pytest.mark.skipif(os.geteuid() != 0, reason="installs a package, for which it has to be root")
def test_root_on_debian_installs_it_once(machine: Machine) -> None:
    machine.program("apt-get", f'cd \'{machine.bin}\'; echo "$*" >>asked; [ "$1" = update ] || cp /bin/true chromium')
    assert machine.run("ensure", "chromium").returncode == 0
    assert machine.run("ensure", "chromium").returncode == 0
    asked = (machine.bin / "asked").read_text().splitlines()
    assert asked == ["update", "install --yes --no-install-recommends chromium"]


def test_without_either_it_says_what_to_do(machine: Machine) -> None:
    (machine.system / "apt-get").unlink(missing_ok=True)
    done = machine.run("ensure", "chromium")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "error: chromium: no Chromium and no Google Chrome on PATH; as root on Debian: `apt-get install chromium`"
    )
    row = next(line for line in machine.run("doctor").stdout.splitlines() if line.startswith("chromium"))
    assert "only for tests of the report" in row
