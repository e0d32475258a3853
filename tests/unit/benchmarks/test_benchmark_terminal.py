"""What a person at a terminal is told of a finished run."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console
from test_benchmark_compare import run

from benchmarks.run_directory import RunDirectory, open_run
from benchmarks.terminal import print_summary


def said(finished: RunDirectory) -> list[str]:
    text = io.StringIO()
    print_summary(Console(file=text, width=100), open_run(finished.path))
    return text.getvalue().splitlines()


def test_a_rate_that_is_too_much_is_no_fault(tmp_path: Path) -> None:
    lines = said(run(tmp_path, "agg-2", 1, rates=[1, 400]))
    assert any(line.startswith("overload 400 req/s: ") for line in lines)
    assert not any(line.startswith("fault ") for line in lines)
    assert lines[-1] == "usable: no fault found"


def test_faults_come_first_and_the_verdict_last(tmp_path: Path) -> None:
    broken = run(tmp_path, "agg-2", 1, rates=[1, 2])
    summary = broken.rate_folder(2) / "summary.json"
    told = json.loads(summary.read_text(encoding="utf-8"))
    told["files"] = {"aiperf/profile_export.jsonl": 10**9}
    summary.write_text(json.dumps(told), encoding="utf-8")
    labels = [line.split(" ")[0] for line in said(broken)]
    found = [label for label in labels if label in ("fault", "overload", "note")]
    assert found == sorted(found, key=("fault", "overload", "note").index)
    assert "fault" in found
    assert said(broken)[-1] == "unusable: 1 fault; these numbers must not be used"


def test_a_sentence_that_several_rates_have_is_said_once(tmp_path: Path) -> None:
    lines = [line for line in said(run(tmp_path, "agg-2", 1, rates=[1, 2])) if line.startswith("note ")]
    sentences = [line.split(": ", 1)[1] for line in lines]
    assert len(sentences) == len(set(sentences))
