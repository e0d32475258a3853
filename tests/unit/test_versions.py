"""versions.toml is the one place where a version stands, and what is generated from it agrees with it."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.lock import REQUIREMENTS, pins
from tools.toolchain import go_programs
from tools.toolchain.go_build import GoProgram

ROOT = Path(__file__).resolve().parents[2]
VERSIONS: dict[str, Any] = tomllib.loads((ROOT / "versions.toml").read_text())
LOCKED_SETS = sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))
# Keys whose values are versions, commits or dates; the others of a table name a package, a module, a library.
NOT_VERSIONS = {
    "distribution",
    "module",
    "command",
    "version_variable",
    "package",
    "library",
    "chart",
    "chart_repository",
    "transfer_module",
    "reason",
}


def tables(data: dict[str, Any], name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every table that holds a value, with its dotted name; `reason` and `distribution` belong to their parent."""
    if any(not isinstance(value, dict) for value in data.values()):
        yield name, data
    for key, value in data.items():
        if isinstance(value, dict) and key not in NOT_VERSIONS:
            yield from tables(value, f"{name}.{key}".lstrip("."))


def values(table: dict[str, Any]) -> dict[str, str]:
    return {key: value for key, value in table.items() if key not in NOT_VERSIONS and isinstance(value, str)}


TABLES = dict(tables(VERSIONS))
# `3.12`, `7.0`: too short to be told from any other number, such as a share in prose.
DISTINCT = sorted({v for table in TABLES.values() for v in values(table).values() if v.count(".") >= 2 or len(v) >= 8})


@pytest.mark.parametrize("name", TABLES)
def test_every_value_has_a_reason(name: str) -> None:
    table = TABLES[name]
    reason = table.get("reason")
    if isinstance(reason, dict):
        wanted = {key for key, value in table.items() if key != "reason" and isinstance(value, str)}
        assert set(reason) == wanted
        reasons = list(reason.values())
    else:
        reasons = [reason]
    assert all(isinstance(text, str) and len(text.split()) >= 4 for text in reasons)


def go_mod(table: str) -> str:
    return (ROOT / "tools" / table.replace("_", "-") / "go.mod").read_text()


@pytest.mark.parametrize("name", [name for name, table in VERSIONS.items() if "module" in table])
def test_go_module_is_the_pinned_one(name: str) -> None:
    table = VERSIONS[name]
    version = table.get("module_version", table["version"])
    required = rf"^(require)?\s*{re.escape(table['module'])} v{re.escape(version)}( // indirect)?$"
    assert re.search(required, go_mod(name), re.MULTILINE), f"tools/{name}/go.mod is not at {version}"


def test_one_go_builds_all_programs() -> None:
    """`make doctor` names the one that Pulumi needs."""
    assert {program.go_minimum for program in go_programs.every()} == {go_programs.pulumi().go_minimum}


def test_kubernetes_libraries_are_those_of_the_pinned_kubernetes() -> None:
    _, minor, patch = VERSIONS["kubernetes"]["version"].split(".")
    replaced = re.findall(r"^replace (\S+) => (\S+) (\S+)$", go_mod("kubernetes"), re.MULTILINE)
    assert len(replaced) > 20
    assert {(new, version) for _, new, version in replaced} == {(old, f"v0.{minor}.{patch}") for old, _, _ in replaced}


@pytest.mark.parametrize("program", go_programs.every(), ids=lambda program: program.name)
def test_go_module_has_the_program_as_a_tool(program: GoProgram) -> None:
    text = (program.module_dir / "go.mod").read_text()
    tools = re.findall(r"^(?:tool |\t)(\S+)$", text, re.MULTILINE)
    if program.package == ".":
        assert [name for name in program.sources if (program.module_dir / name).exists()] == ["main.go"]
    else:
        assert program.package in tools


@pytest.mark.parametrize("name", LOCKED_SETS)
def test_lock_file_has_the_versions_and_names_asked_for(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))
    asked = re.findall(r"^([A-Za-z0-9_.-]+)", (REQUIREMENTS / f"{name}.in").read_text(), re.MULTILINE)
    for distribution in asked:
        normal = re.sub(r"[-_.]+", "-", distribution).lower()
        assert normal in locked, f"{distribution} is in {name}.in and not in {name}.txt: run `make lock`"
        if distribution in pins(name):
            assert locked[normal] == pins(name)[distribution], f"{name}.txt is behind versions.toml: run `make lock`"


@pytest.mark.parametrize("name", LOCKED_SETS)
def test_lock_file_has_hashes_and_says_nothing_of_the_machine_it_was_made_on(name: str) -> None:
    lines = (REQUIREMENTS / f"{name}.txt").read_text().splitlines()[1:]
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==\S+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def searched_files() -> list[Path]:
    """Everything that is or would be committed, without what may hold a version by its nature."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    names = [name for name in listing.split("\0") if name]
    # Lock files are generated from versions.toml (tested above). A decision record says what was true on its date.
    generated = re.compile(
        r"versions\.toml|requirements/[^/]*\.txt|docker/rocm-constraints\.txt|tools/[^/]*/go\.(mod|sum)|docs/decisions/.*|shared/.*"
    )
    return [ROOT / name for name in names if not generated.fullmatch(name) and (ROOT / name).is_file()]


def test_no_version_stands_anywhere_else() -> None:
    pattern = re.compile(rf"(?<![\w.])v?({'|'.join(map(re.escape, DISTINCT))})(?![\w]|\.\d)")
    copies: list[str] = []
    for path in searched_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # an image
        copies += [
            f"{path.relative_to(ROOT)}:{number}: {match[0]}"
            for number, line in enumerate(lines, start=1)
            if (match := pattern.search(line))
        ]
    assert not copies, "say `the pinned Ray` and the like, or read versions.toml:\n" + "\n".join(copies)


def test_the_rocm_image_takes_what_ran_on_cpu_where_it_is_not_the_accelerators() -> None:
    """Ray refuses later releases of some: the ROCm image, which has no lock file, may not take them either."""
    constraints = (ROOT / "docker" / "rocm-constraints.txt").read_text()
    locked = (ROOT / "requirements" / "runtime-cpu.txt").read_text()
    lines = [line for line in constraints.splitlines() if not line.startswith("#")]
    assert all(re.search(rf"^{re.escape(line)}( |$)", locked, re.MULTILINE) for line in lines)
    assert any(line.startswith("fastapi==") for line in lines)
    assert not [line for line in lines if line.startswith(("torch", "nvidia", "triton", "vllm", "nixl"))]
