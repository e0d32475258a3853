"""The toolchain as a user meets it: `python3 -m tools.toolchain` on a copy of this tree, real uv, real Python."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from toolchain_machine import ROOT, Machine, link_programs, one_error_line

from tools.toolchain import checkout, pulumi_cli
from tools.toolchain.find_python import find_python


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_the_distribution_installed_is_not_on_the_bare_path(tmp_path: Path) -> None:
    distribution = tmp_path / "distribution"
    distribution.mkdir()
    for name in ("sh", "go", "pulumi", "pulumi-language-python", "uv"):
        (distribution / name).touch()
    link_programs(f"{distribution}:{distribution}", tmp_path / "bare")
    assert [place.name for place in (tmp_path / "bare").iterdir()] == ["sh"]


def test_sufficient_pulumi_on_path_is_used_and_nothing_is_built(machine: Machine) -> None:
    place = machine.program("pulumi", "echo v99.0.0")
    result = machine.run("ensure", "pulumi")
    assert result.returncode == 0, result.stderr
    assert "found v99.0.0" in result.stdout
    assert machine.run("path", "pulumi").stdout.strip() == str(place)
    assert not (machine.cache / "bin").exists()


def test_older_pulumi_is_named_and_one_must_be_built(machine: Machine) -> None:
    machine.program("pulumi", "echo v3.100.0")
    result = machine.run("ensure", "pulumi")
    assert "is v3.100.0" in result.stdout
    assert "no Go to build it with" in one_error_line(result)


def test_too_old_go_is_named(machine: Machine) -> None:
    machine.program("go", "echo go version go1.19.1 linux/amd64")
    assert "only go1.19.1 to build it with" in one_error_line(machine.run("ensure", "pulumi"))


def test_pulumi_of_some_virtual_environment_is_not_taken_for_an_installed_one(machine: Machine, tmp_path: Path) -> None:
    machine.program("pulumi", "echo v99.0.0")
    (tmp_path / "pyvenv.cfg").touch()
    assert "no Go" in one_error_line(machine.run("ensure", "pulumi"))


def test_broken_python_shim_is_skipped(machine: Machine, tmp_path: Path) -> None:
    machine.program("python3.12", "echo 'pyenv: python3.12: command not found' >&2; exit 127")
    versions = tmp_path / "pyenv" / "versions" / "3.12.99" / "bin"
    versions.mkdir(parents=True)
    (versions / "python3.12").symlink_to(find_python())
    result = machine.run("path", "python", PATH=str(machine.bin), PYENV_ROOT=str(tmp_path / "pyenv"))
    assert result.returncode == 0, result.stderr
    assert subprocess.check_output([result.stdout.strip(), "--version"], text=True).startswith("Python 3.12")


def test_no_python_is_one_line_with_the_ways_to_get_it(machine: Machine) -> None:
    machine.program("python3.12", "exit 127")
    assert "pyenv install 3.12" in one_error_line(machine.run("path", "python", PATH=str(machine.bin)))


def test_two_racing_runs_make_an_environment_once_and_the_second_says_that_it_waits(machine: Machine) -> None:
    machine.with_uv_and_python()
    machine.with_small_benchmark_environment()
    command = machine.command("ensure", "benchmark")
    runs = [
        subprocess.Popen(command, cwd=machine.root, env=machine.environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert sorted("making" in output.partition("another run")[0] for output in outputs) == [False, True]
    assert sum("made in" in output for output in outputs) == 1
    python = Path(machine.run("path", "benchmark").stdout.strip()) / "bin" / "python"
    subprocess.run([python, "-c", "import iniconfig"], check=True)


def test_environment_that_an_interrupted_run_left_is_made_again(machine: Machine) -> None:
    machine.with_uv_and_python()
    machine.with_small_benchmark_environment()
    assert machine.run("ensure", "benchmark").returncode == 0
    folder = Path(machine.run("path", "benchmark").stdout.strip())
    (folder / ".complete").unlink()
    (folder / "half").touch()
    assert "make toolchain" in one_error_line(machine.run("path", "benchmark"))
    result = machine.run("ensure", "benchmark")
    assert "unfinished; making it again" in result.stdout
    assert not (folder / "half").exists()
    assert "found in" in machine.run("ensure", "benchmark").stdout


def test_interrupted_run_ends_what_it_started_and_says_how_to_go_on(machine: Machine) -> None:
    machine.with_uv_and_python()
    machine.with_small_benchmark_environment()
    command = machine.command("ensure", "benchmark")
    run = subprocess.Popen(
        command, cwd=machine.root, env=machine.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert "making" in run.stdout.readline()
    run.terminate()
    assert run.communicate()[1].splitlines() == ["interrupted; the same command goes on where this one stopped"]
    assert run.returncode == 130
    assert machine.run("path", "benchmark").returncode == 1
    assert "made in" in machine.run("ensure", "benchmark").stdout


def test_changed_pins_make_another_environment_beside_the_old(machine: Machine) -> None:
    machine.with_uv_and_python()
    machine.with_small_benchmark_environment()
    machine.run("ensure", "benchmark")
    with (machine.root / "requirements" / "benchmark.txt").open("a") as file:
        file.write("# another pin\n")
    assert machine.run("path", "benchmark").returncode == 1
    machine.run("ensure", "benchmark")
    assert len(list((machine.cache / "envs").iterdir())) == 2


def test_wrong_hash_fails_in_one_line_and_leaves_nothing_that_looks_finished(machine: Machine) -> None:
    machine.with_uv_and_python()
    machine.with_small_benchmark_environment()
    pins = machine.root / "requirements" / "benchmark.txt"
    pins.write_text(pins.read_text().partition("\n")[0] + f"\n    --hash=sha256:{'0' * 64}\n")
    assert "see " in one_error_line(machine.run("ensure", "benchmark"))
    assert machine.run("path", "benchmark").returncode == 1


def test_doctor_names_what_is_missing_and_fails(machine: Machine) -> None:
    result = machine.run("doctor", PATH=str(machine.bin))
    assert result.returncode == 1
    rows = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert "MISSING" in rows["git"]
    assert "MISSING" in rows["go"]
    assert "make toolchain" in rows["runtime-cpu"]


def test_env_lines_work_in_a_shell_and_keep_a_chosen_passphrase(machine: Machine, tmp_path: Path) -> None:
    secret = tmp_path / "pulumi" / "pd-mi325x.passphrase"
    secret.parent.mkdir()
    secret.write_text("x")
    lines = machine.run("env").stdout
    shell = f'{lines}\nprintf "%s\\n" "${{PATH%%:*}}" "$PULUMI_CONFIG_PASSPHRASE_FILE"'
    answer = subprocess.run(
        ["/bin/sh", "-c", shell], env=machine.environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == [str(machine.root / ".venv" / "bin"), str(secret)]
    assert "PASSPHRASE" not in machine.run("env", PULUMI_CONFIG_PASSPHRASE="").stdout


def test_stacks_are_registered_once_with_a_private_passphrase(machine: Machine, tmp_path: Path) -> None:
    pulumi = pulumi_cli.installed() or pulumi_cli.built()
    assert pulumi is not None, "no pulumi on this machine: run `make toolchain`"
    (machine.bin / "pulumi").symlink_to(pulumi)
    for name in ("local-agg-2", "pd-2p1d"):
        shutil.copy(ROOT / f"Pulumi.{name}.yaml", machine.root)
    (tmp_path / "state").mkdir()
    backend = f"file://{tmp_path / 'state'}"
    first = machine.run(module="tools.stacks", PULUMI_BACKEND_URL=backend)
    assert first.returncode == 0, first.stderr
    assert "encryptionsalt" in first.stdout
    files = {path: path.read_bytes() for path in machine.root.glob("Pulumi.*.yaml")}
    second = machine.run(module="tools.stacks", PULUMI_BACKEND_URL=backend)
    assert "0 registered, 2 already there" in second.stdout
    assert {path: path.read_bytes() for path in files} == files
    assert stat.S_IMODE((tmp_path / "pulumi" / "pd-mi325x.passphrase").stat().st_mode) == 0o600


def test_this_checkout_runs_a_sufficient_pulumi_and_has_a_language_host() -> None:
    assert checkout.is_current(), "no finished .venv: run `make tools`"
    pulumi = shutil.which("pulumi", path=f"{checkout.VENV / 'bin'}:{os.environ['PATH']}")
    assert pulumi is not None
    assert pulumi_cli.version_of(Path(pulumi)).startswith("v")
    stand_in = checkout.VENV / "bin" / "pulumi-language-python"
    assert stand_in.exists() == (pulumi_cli.official_host() is None)
