"""`python -m serving check` as it is typed: exit codes, formats, waivers, versions, odd input."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from guard_cases import FOLDER
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving.__main__ import main
from serving.errors import ConfigError
from serving.guards.all import GUARDS
from serving.guards.check import check
from serving.guards.read import read
from serving.stack_files import load_stack

BAD = str(FOLDER / "engine-on-cpu" / "bad.yaml")
GOOD = str(Path(__file__).with_name("plausible") / "cpu.yaml")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["check", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_an_error_has_its_place_its_reason_and_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, BAD)
    assert code == 4
    words = " ".join(out.split())
    assert "bad.yaml:9: applications[0].args.prefill_config.accelerator_type" in words.replace("\n", "")
    assert "AMD-Instinct-MI325X-OAM without a bundle that has a GPU" in words
    assert "ray#62139" in words


def test_what_is_right_is_said_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, GOOD)
    assert code == 0
    assert "nothing found" in out or "note" in out
    assert f"({len(GUARDS)} guards)" in out


def test_several_targets_are_checked_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, GOOD, BAD, "pd-2p1d")
    assert code == 4
    assert "cpu.yaml" in out
    assert "pd-2p1d" in out


def test_json_has_what_the_table_has(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, BAD, "--format", "json")
    assert code == 4
    found = json.loads(out)
    ours = [finding for finding in found["findings"] if finding["guard"] == "engine-on-cpu"]
    assert [(f["severity"], f["line"]) for f in ours] == [("error", 9), ("error", 14)]
    assert all(f["file"] == BAD and f["fix"] and f["source"] and f["silently"] for f in ours)
    assert found["versions"][BAD]["ray"]


def test_sarif_points_at_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, BAD, "--format", "sarif", "--waive", "engine-on-cpu=a rehearsal on CPUs")
    assert code != 4
    document = json.loads(out)
    assert document["version"] == "2.1.0"
    [run_] = document["runs"]
    rules = {rule["id"] for rule in run_["tool"]["driver"]["rules"]}
    assert rules == {guard.id for guard in GUARDS}
    ours = [result for result in run_["results"] if result["ruleId"] == "engine-on-cpu"]
    places = [result["locations"][0]["physicalLocation"] for result in ours]
    assert [place["region"]["startLine"] for place in places] == [9, 14]
    assert all(result["suppressions"][0]["justification"] == "a rehearsal on CPUs" for result in ours)


def test_a_waived_finding_is_shown_with_its_reason_and_no_longer_counts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, BAD, "--waive", "engine-on-cpu=a rehearsal on CPUs")
    assert code != 4
    assert "a rehearsal on CPUs" in out
    assert "2 waived" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "stack: no file Pulumi.nope.yaml"),
        (["nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory"),
        ([str(FOLDER) + "/"], "cannot be read: Is a directory"),
        (
            [BAD, "--waive", "engine-on-cp=x"],
            "--waive.engine-on-cp: there is no guard of this name; do you mean engine-",
        ),
        ([BAD, "--waive", "engine-on-cpu"], "--waive.engine-on-cpu: has no reason"),
        ([BAD, "--versions", "rya=2.55"], "--versions: unknown component 'rya'"),
        ([BAD, "--versions", "ray=new"], "--versions: 'new' is no version of ray"),
        (["pd-2p1d", "--versions", "ray=2.60"], "--versions: pd-2p1d is a stack"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 1
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b: c", "mapping values are not allowed"),
        ("{{ .Values.x }}: {", "is not YAML"),
        ("", "holds neither a Ray Serve config nor a manifest with pods"),
        ("- 1\n- 2", "holds neither"),
        ("kind: Service\napiVersion: v1", "holds neither"),
        ("applications: &a [*a]", ""),
        ("kind: RayService\napiVersion: ray.io/v1\nspec: {serveConfigV2: '{'}", "is not YAML"),
    ],
)
def test_odd_text_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "odd.yaml").write_text(text)
    code, _, err = run(capsys, str(tmp_path / "odd.yaml"))
    assert code == (1 if words else 4)
    assert len(err.splitlines()) == (1 if words else 0)
    assert words in err


def test_a_hook_passes_over_what_is_something_else(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("a: 1")
    assert run(capsys, str(tmp_path / "other.yaml"), "--skip-others")[0] == 0
    assert run(capsys, str(tmp_path / "other.yaml"), BAD, "--skip-others")[0] == 4


def test_a_text_in_a_text_keeps_its_lines() -> None:
    """serveConfigV2 is YAML in YAML: its findings have lines of the file."""
    config = yaml.safe_load(Path(BAD).read_text(encoding="utf-8"))
    block = "".join(f"    {line}\n" for line in yaml.safe_dump(config).splitlines())
    text = f"apiVersion: ray.io/v1\nkind: RayService\nmetadata: {{name: x}}\nspec:\n  serveConfigV2: |\n{block}"
    wanted = {n for n, line in enumerate(text.splitlines(), 1) if "accelerator_type: " in line}
    found = [f for f in check(read(text, "x.yaml"), GUARDS) if f.guard.id == "engine-on-cpu"]
    assert {finding.place.line for finding in found} == wanted
    quoted = yaml.safe_dump({"apiVersion": "ray.io/v1", "kind": "RayService", "spec": {"serveConfigV2": block}})
    found = [f for f in check(read(quoted, "x.yaml"), GUARDS) if f.guard.id == "engine-on-cpu"]
    assert {finding.place.line for finding in found} == {4}


_ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["8", "NixlConnector"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=6), below, max_size=3),
    max_leaves=5,
)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(st.data())
def test_nothing_that_stands_in_a_file_is_a_traceback(data: st.DataObject) -> None:
    """Any value of any configuration of these tests replaced by any other."""
    path = data.draw(st.sampled_from(sorted(FOLDER.parent.glob("guard_cases/*/*d*.yaml"))))
    documents = [d for d in yaml.safe_load_all(path.read_text(encoding="utf-8")) if d]
    at = data.draw(st.sampled_from(_paths(documents)))
    below: Any = documents
    for part in at[:-1]:
        below = below[part]
    below[at[-1]] = data.draw(_ODD)
    with suppress(ConfigError):  # which is one line
        check(read(yaml.safe_dump_all(documents), "odd.yaml"), GUARDS)


def _paths(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, below in entries for path in ((*above, key), *_paths(below, (*above, key)))]


def test_a_stack_names_its_key_and_waives_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert load_stack("pd-2p1d").waive == {}
    code, out, _ = run(capsys, "pd-2p1d", "--format", "json")
    assert code == 0
    assert set(json.loads(out)["versions"]) == {"pd-2p1d"}
