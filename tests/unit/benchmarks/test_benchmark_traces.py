"""Traces in Mooncake's and Azure's format are read; a broken line is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.trace_files import read_trace

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:17:03.9799600,4808,10\n"
    "2023-11-16 18:17:05.4799600,110,27\n"
    "2023-11-16 18:17:04.0000000,3180,0\n"
)


def mooncake(**changes: Any) -> str:
    return json.dumps({"timestamp": 1000, "input_length": 700, "output_length": 40, "hash_ids": [1, 2]} | changes)


def written(tmp_path: Path, name: str, *lines: str) -> Path:
    file = tmp_path / name
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_mooncake(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "trace.jsonl",
        mooncake(timestamp=3000),
        mooncake(),
        "",
        mooncake(timestamp=2000, input_length=512, hash_ids=[9]),
    )
    read = read_trace(file)
    assert [one.at_s for one in read] == [0.0, 1.0, 2.0]
    assert [(one.isl, one.osl, one.blocks) for one in read] == [(700, 40, (1, 2)), (512, 40, (9,)), (700, 40, (1, 2))]


def test_azure(tmp_path: Path) -> None:
    read = read_trace(written(tmp_path, "trace.csv", AZURE.rstrip()))
    # An answer without tokens has no latency.
    assert [(one.isl, one.osl, one.blocks) for one in read] == [(4808, 10, None), (110, 27, None)]
    assert read[1].at_s == pytest.approx(1.5)


def test_azure_with_the_offset_that_newer_files_have(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "trace.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2024-05-10 00:00:00.009930+00:00,2162,5",
        "2024-05-10 00:00:00.017335+00:00,2399,6",
    )
    assert read_trace(file)[1].at_s == pytest.approx(0.007405, abs=1e-6)


def test_requests_that_the_engine_cannot_hold_are_left_out(tmp_path: Path) -> None:
    file = written(tmp_path, "trace.csv", AZURE.rstrip())
    assert [one.isl for one in read_trace(file, 4000)] == [110]
    with pytest.raises(BenchmarkError, match="no request of at most 100 tokens among its 3 lines"):
        read_trace(file, 100)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"timestamp": 1', "not JSON"),
        ("[1, 2]", "not an object"),
        (mooncake(timestamp="soon"), "timestamp is not a number of milliseconds"),
        (mooncake(input_length=0), "input_length is not a number of tokens"),
        (mooncake(input_length=None), "input_length is not a number of tokens"),
        (mooncake(output_length=1.5), "output_length is not a number of tokens"),
        ('{"timestamp": NaN, "input_length": 1, "output_length": 1}', "NaN is no number"),
        ('{"timestamp": 1e400, "input_length": 1, "output_length": 1}', "1e400 is too large a number"),
        (mooncake(timestamp=int("9" * 400)), "timestamp is not a number of milliseconds"),
        ('{"timestamp": ' + "9" * 5000 + "}", "a number of too many digits"),
        ("[" * 100_000, "nested too deeply"),
        ('{"timestamp": 1, "timestamp": 2}', "the key 'timestamp' stands twice"),
        (mooncake(input_length=10**12), "input_length is more than 10,000,000 tokens"),
        (mooncake(hash_ids="1 2"), "hash_ids is not a list of whole numbers"),
        (mooncake(hash_ids=[1, 2, 3]), "3 hash_ids, and 700 tokens have 2 blocks of 512"),
    ],
)
def test_a_broken_line_of_mooncake_is_named(tmp_path: Path, line: str, said: str) -> None:
    file = written(tmp_path, "trace.jsonl", mooncake(), line)
    with pytest.raises(BenchmarkError) as caught:
        read_trace(file)
    assert str(caught.value).startswith(f"trace {file}, line 2: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2", "line 1: the columns must be TIMESTAMP, ContextTokens, GeneratedTokens"),
        (AZURE + "yesterday,1,2", "line 5: TIMESTAMP 'yesterday' is no date and time"),
        (AZURE + "2023-11-16 18:17:03,-1,2", "line 5: ContextTokens is not a number of tokens"),
        (AZURE + "2023-11-16 18:17:03,0,2", "line 5: ContextTokens is 0"),
        (AZURE + f"2023-11-16 18:17:03,{'9' * 5000},3", "line 5: ContextTokens is more than 10,000,000 tokens"),
        (AZURE + f"2023-11-16 18:17:03,{'a' * 200_000},3", "line 5: not CSV (field larger than field limit"),
        (AZURE + "2023-11-16 18:17:03,7", "line 5: GeneratedTokens is not a number of tokens"),
    ],
)
def test_a_broken_line_of_azure_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BenchmarkError) as caught:
        read_trace(written(tmp_path, "trace.csv", text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_line_separator_inside_of_a_text_ends_no_line(tmp_path: Path) -> None:
    line = '{"timestamp": 0, "note": "a\u2028b", "input_length": 7, "output_length": 1}'
    assert [one.isl for one in read_trace(written(tmp_path, "trace.jsonl", line))] == [7]


def test_a_trace_that_is_no_utf8_names_the_line(tmp_path: Path) -> None:
    file = written(tmp_path, "trace.jsonl", mooncake())
    file.write_bytes(file.read_bytes().rstrip() + b"\n\xff\n")
    with pytest.raises(BenchmarkError, match=r"trace\.jsonl, line 2: not UTF-8"):
        read_trace(file)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="cannot read trace"):
        read_trace(Path("a\0b.csv"))
    with pytest.raises(BenchmarkError, match=r"cannot read trace .*missing.csv: No such file"):
        read_trace(tmp_path / "missing.csv")
    with pytest.raises(BenchmarkError, match=r"must end with .jsonl \(Mooncake\) or .csv \(Azure\)"):
        read_trace(written(tmp_path, "trace.parquet", ""))
    with pytest.raises(BenchmarkError, match="has no request among its 0 lines"):
        read_trace(written(tmp_path, "empty.jsonl", ""))
