"""Recorded traces: lengths, spacing and, where the format has them, shared blocks of real requests.

Two formats, told apart by the file's name:

* `.jsonl`, Mooncake (FAST'25 release of kvcache-ai/Mooncake): one object a line with `timestamp` (ms), `input_length`,
  `output_length` and `hash_ids`, one id for each block of 512 tokens; equal ids are equal content up to there.
* `.csv`, Azure LLM inference traces (Azure/AzurePublicDataset): TIMESTAMP, ContextTokens, GeneratedTokens.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks import strict_json
from benchmarks.errors import BenchmarkError
from benchmarks.lengths import MOST_TOKENS

MOONCAKE_BLOCK = 512
_LATEST_MS = 1e15  # 30,000 years: more is no time, and a float would round it
_AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


@dataclass(frozen=True)
class Traced:
    """One recorded request. at_s: seconds since the first one; lengths in tokens; blocks: None without hash ids."""

    at_s: float
    isl: int
    osl: int
    blocks: tuple[int, ...] | None


def sha256_of(path: Path) -> str:
    """SHA-256 of a trace's content, in hexadecimal. Raises BenchmarkError when it cannot be read."""
    return hashlib.sha256(_content(path)).hexdigest()


def read_trace(path: Path, longest: int | None = None, sha256: str | None = None) -> tuple[Traced, ...]:
    """The requests of a trace in order of time.

    Left out are those of more than `longest` tokens, prompt and answer together, and those without an output token, of
    which no latency can be measured. Raises BenchmarkError naming the file and the line; and when `sha256` is given and
    the content is another.
    """
    found = sha256_of(path)
    if sha256 not in (None, found):
        raise BenchmarkError(
            f"trace {path} is not the one that this was begun with (SHA-256 {found[:12]}, not {sha256[:12]}); "
            "put that back, or start a new run"
        )
    return _read(path, longest, found)


def _content(path: Path) -> bytes:
    if path.suffix not in (".jsonl", ".csv"):
        raise BenchmarkError(f"trace {path}: the name must end with .jsonl (Mooncake) or .csv (Azure)")
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        problem = getattr(error, "strerror", None) or error
        raise BenchmarkError(f"cannot read trace {path}: {problem}".replace("\0", "\\0")) from None


@lru_cache(maxsize=4)  # a trace has tens of thousands of lines and is asked for at every rate
def _read(path: Path, longest: int | None, sha256: str) -> tuple[Traced, ...]:
    content = _content(path)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise BenchmarkError(f"trace {path} is being written to; start again when it is whole")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _broken(path, content.count(b"\n", 0, error.start) + 1, "not UTF-8") from None
    everything = list((_mooncake if path.suffix == ".jsonl" else _azure)(path, text))
    kept = [one for one in everything if one.osl > 0 and (longest is None or one.isl + one.osl <= longest)]
    if not kept:
        limit = f" of at most {longest} tokens" if longest is not None else ""
        raise BenchmarkError(f"trace {path} has no request{limit} among its {len(everything)} lines")
    kept.sort(key=lambda one: one.at_s)
    start = kept[0].at_s
    return tuple(Traced(one.at_s - start, one.isl, one.osl, one.blocks) for one in kept)


def _mooncake(path: Path, text: str) -> Iterator[Traced]:
    # Not splitlines, which also ends lines at U+2028 and its like, inside of a JSON text.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            raw = strict_json.loads(line)
        except strict_json.NotJsonError as error:
            raise _broken(path, number, f"not JSON ({error.problem})") from None
        if not isinstance(raw, dict):
            raise _broken(path, number, "not an object")
        values: dict[str, Any] = raw
        isl = _count(path, number, values, "input_length", 1)
        osl = _count(path, number, values, "output_length", 0)
        yield Traced(_milliseconds(path, number, values) / 1000, isl, osl, _blocks(path, number, values, isl))


def _blocks(path: Path, number: int, values: dict[str, Any], isl: int) -> tuple[int, ...] | None:
    blocks = values.get("hash_ids")
    if blocks is None:
        return None
    if not isinstance(blocks, list) or not all(type(block) is int for block in blocks):
        raise _broken(path, number, "hash_ids is not a list of whole numbers")
    if len(blocks) > -(-isl // MOONCAKE_BLOCK):
        most = -(-isl // MOONCAKE_BLOCK)
        raise _broken(path, number, f"{len(blocks)} hash_ids, and {isl} tokens have {most} blocks of {MOONCAKE_BLOCK}")
    return tuple(blocks)


def _milliseconds(path: Path, number: int, values: dict[str, Any]) -> float:
    value = values.get("timestamp")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST_MS:
        raise _broken(path, number, "timestamp is not a number of milliseconds")
    return float(value)


def _count(path: Path, number: int, values: dict[str, Any], key: str, least: int) -> int:
    value = values.get(key)
    if type(value) is not int or value < least:
        raise _broken(path, number, f"{key} is not a number of tokens")
    return _possible(path, number, key, value)


def _possible(path: Path, number: int, key: str, tokens: int) -> int:
    if tokens > MOST_TOKENS:
        raise _broken(path, number, f"{key} is more than {MOST_TOKENS:,} tokens")
    return tokens


def _azure(path: Path, text: str) -> Iterator[Traced]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    try:
        if not set(_AZURE_COLUMNS) <= set(rows.fieldnames or ()):
            raise _broken(path, 1, f"the columns must be {', '.join(_AZURE_COLUMNS)}")
        for row in rows:
            isl, osl = (_tokens(path, rows.line_num, row, column) for column in _AZURE_COLUMNS[1:])
            if isl == 0:
                raise _broken(path, rows.line_num, "ContextTokens is 0")
            yield Traced(_moment(path, rows.line_num, row["TIMESTAMP"]), isl, osl, None)
    except csv.Error as error:  # a field of more than 131,072 characters
        raise _broken(path, rows.line_num + 1, f"not CSV ({error})") from None


def _tokens(path: Path, number: int, row: dict[str, str | Any], column: str) -> int:
    value = row[column]
    if not isinstance(value, str) or not value.strip().isdecimal():
        raise _broken(path, number, f"{column} is not a number of tokens")
    # Python refuses to read a number of thousands of digits.
    return _possible(path, number, column, int(value) if len(value.strip()) < 20 else MOST_TOKENS + 1)


def _moment(path: Path, number: int, text: str) -> float:
    # 2023-11-16 18:17:03.9799600: seven decimals, of which Python reads six; newer files add an offset from UTC.
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (AttributeError, ValueError, OverflowError):
        shown = text if not isinstance(text, str) or len(text) <= 40 else f"{text[:40]}…"
        raise _broken(path, number, f"TIMESTAMP {shown!r} is no date and time") from None


def _broken(path: Path, number: int, problem: str) -> BenchmarkError:
    return BenchmarkError(f"trace {path}, line {number}: {problem}")
