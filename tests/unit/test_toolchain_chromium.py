"""The browser for tests of the report: found on PATH, installed by root on Debian, or one line that says what to do."""

import os
from pathlib import Path

import pytest
from toolchain_machine import Machine

FONT = "echo Liberation Sans"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("name", ["chromium", "google-chrome"])
def test_one_on_path_is_taken(machine: Machine, name: str) -> None:
    machine.program(name, "true")
    machine.program("fc-match", FONT)
    assert machine.run("ensure", "chromium").stdout.splitlines() == [f"chromium: found {machine.bin / name}"]
    assert machine.run("path", "chromium").stdout.strip() == str(machine.bin / name)


@pytest.mark.skipif(os.geteuid() != 0, reason="installs a package, for which it has to be root")
def test_root_on_debian_installs_it_once(machine: Machine) -> None:
    machine.program(
        "apt-get",
        f'cd \'{machine.bin}\'; echo "$*" >>asked; [ "$1" = update ] && exit\n'
        f"cp /bin/true chromium; printf '#!/bin/sh\n{FONT}\n' >fc-match; chmod +x fc-match",
    )
    assert machine.run("ensure", "chromium").returncode == 0
    assert machine.run("ensure", "chromium").returncode == 0
    asked = (machine.bin / "asked").read_text().splitlines()
    assert asked == ["update", "install --yes --no-install-recommends chromium fonts-liberation fontconfig"]


def test_a_wider_font_in_place_of_arial_is_said(machine: Machine) -> None:
    (machine.system / "apt-get").unlink(missing_ok=True)
    machine.program("chromium", "true")
    machine.program("fc-match", "echo DejaVu Sans")
    done = machine.run("ensure", "chromium")
    assert done.returncode == 1
    assert "chromium: the font Liberation Sans, or Arial, is missing (fc-match); as root on Debian" in done.stderr


def test_without_either_it_says_what_to_do(machine: Machine) -> None:
    (machine.system / "apt-get").unlink(missing_ok=True)
    done = machine.run("ensure", "chromium")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "error: chromium: no Chromium and no Google Chrome on PATH; as root on Debian: `apt-get install chromium`"
    )
    row = next(line for line in machine.run("doctor").stdout.splitlines() if line.startswith("chromium"))
    assert "only for tests and pictures of the report" in row
