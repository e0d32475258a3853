"""Guards in `pulumi preview`: what a stack file can express ends it, at its key and before anything is made."""

import json

import pytest
import yaml

from serving.guards.all import GUARDS
from tests.shell import Shell, assert_one_clear_line
from tests.unit.serving.guard_cases import Case, cases

IMAGES = {name: f"registry.example.com/team/{name}@sha256:{'0' * 64}" for name in ("engine", "benchmark")}
ERRORS = {guard.id: guard for guard in GUARDS if guard.severity == "error"}
PLANTED = [case for case in cases() if case.bad and case.of_stack and case.guard in ERRORS]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """One checkout for all of them."""
    from tests.conftest import new_shell

    return new_shell(tmp_path_factory.mktemp("guards"))


def write(shell: Shell, case: Case, **more: object) -> None:
    shell.write_stack("mine", **{"images": IMAGES, **case.settings(), **more})


@pytest.mark.parametrize("case", PLANTED, ids=lambda case: f"{case.guard}-{case.path.name}")
def test_it_ends_the_preview_at_the_key(shell: Shell, case: Case) -> None:
    (shell.checkout / "Pulumi.mine.yaml").unlink(missing_ok=True)
    write(shell, case)
    shell.run("pulumi stack select --create mine")
    answer = shell.run("pulumi preview --stack mine")
    for key in case.expected:
        assert_one_clear_line(answer, "error:", f"{key}: ", f"[{case.guard}]")
    assert json.loads(shell.run("pulumi stack export --stack mine").text)["deployment"].get("resources", []) == []


def test_a_waived_one_is_said_with_its_reason(shell: Shell) -> None:
    case = PLANTED[0]
    (shell.checkout / "Pulumi.mine.yaml").unlink(missing_ok=True)
    write(shell, case, waive={case.guard: "we know what we do"})
    shell.run("pulumi stack select --create mine")
    answer = shell.run("pulumi preview --stack mine")
    assert f"{case.guard} is waived: we know what we do" in answer.text
    assert f"[{case.guard}]" not in answer.text


def test_a_waiver_of_no_guard_is_refused(shell: Shell) -> None:
    (shell.checkout / "Pulumi.mine.yaml").unlink(missing_ok=True)
    write(shell, PLANTED[0], waive={"ucx-tpc": "a slip"})
    shell.run("pulumi stack select --create mine")
    assert_one_clear_line(shell.run("pulumi preview --stack mine"), "pd-mi325x:waive.ucx-tpc", "do you mean ucx-tcp?")


def test_the_planted_ones_are_yaml_that_a_user_can_write() -> None:
    assert PLANTED
    assert all(isinstance(yaml.safe_load(case.text), dict) for case in PLANTED)
