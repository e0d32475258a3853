"""UCX's own account of what it does: endpoint lines and protocol tables in a log written with UCX_PROTO_INFO.

Layouts, each seen in a capture of tests/unit/serving/ucx_logs: up to UCX 1.21 a title of one row with two cells; from
1.22 a title of two rows and a header; with UCX_PROTO_INFO=used (from 1.21) a Count column in front.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from serving.rdma_gate.log_text import lines_of, ucx_line
from serving.rdma_gate.ucx_lanes import Lane, Lanes, parse_lanes

Scope = Literal["self", "intra-node", "inter-node"]
_SCOPE = r"(?P<scope>self|intra-node|inter-node) cfg#(?P<config>\d+)"
_TITLE = re.compile(rf"(?:.+ )?{_SCOPE}")  # in front the worker's name, which may have blanks
_ENDPOINT = re.compile(rf"UCX  INFO\s+(?:.+ )?{_SCOPE} (?P<features>\w+\(.+\))\s*$")
_FEATURE = re.compile(r"(?P<feature>\w+)\((?P<lanes>[^)]*)\)")
# Of an operation that does not know the peer's memory (a message), nothing is said of where it goes.
_OPERATION = re.compile(
    r"(?P<operation>.+?) by (?P<call>\w+\*?)(?:\([^)]*\))?"
    r"(?: (?:into|from) (?P<local>.+?) (?:from|to) (?P<remote>.+)| .+)?"
)
_MEMORY = re.compile(r"(?P<kind>[a-z-]+)(?:/(?P<device>\S+)| memory)?")
_RANGE = re.compile(r"(?P<first>\d+[KMGT]?)(?:\.\.(?P<last>\d+[KMGT]?|inf))?")
_BORDER = re.compile(r"\+[-+]+\+")
_UNIT = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}  # ucs_memunits_to_str


@dataclass(frozen=True)
class Memory:
    """kind: host, rocm, cuda, … as ucs_memory_type_names has them. device: `GPU0`; empty where UCX does not say."""

    kind: str
    device: str = ""


@dataclass(frozen=True)
class Row:
    """What UCX does with messages of `first` to `last` bytes (last is inf in the open row).

    count: how often, with UCX_PROTO_INFO=used; else None.
    """

    first: int
    last: float
    description: str
    lanes: Lanes
    count: int | None = None


@dataclass(frozen=True)
class Table:
    """One protocol table. operation: `remote memory read`. complete: its last border was read, and a row for each size.

    UCX writes a row for every range from 0 on (ucp_proto_select.c), so where one ends and the next does not begin, a
    line is lost.
    """

    scope: Scope
    config: int
    operation: str
    local: Memory
    remote: Memory
    rows: tuple[Row, ...]
    complete: bool

    def row_for(self, size: float) -> Row | None:
        return next((row for row in self.rows if row.first <= size <= row.last), None)


@dataclass(frozen=True)
class Endpoint:
    """One endpoint line. features: rma, rma_am, am, … -> lanes. It names one lane even where several are used."""

    scope: Scope
    config: int
    features: dict[str, tuple[Lane, ...]]


@dataclass(frozen=True)
class ProtocolLog:
    """All endpoint lines and tables of one log, in their order.

    fragments: of what UCX wrote as a table and is none, the first line each: without the lines that are lost there, one
    does not know of which operation it was.
    """

    endpoints: tuple[Endpoint, ...]
    tables: tuple[Table, ...]
    fragments: tuple[str, ...]


@dataclass
class _Draft:
    """A table while its lines come in."""

    border: str
    first: str = ""
    scope: Scope | None = None
    config: int = 0
    title: str = ""
    rows: list[Row] = field(default_factory=list)
    broken: bool = False

    def add(self, line: str) -> None:
        self.first = self.first or line
        if not line.endswith("|") or len(line) < 2:
            self.broken = True
            return
        cells = [cell.strip() for cell in line[1:-1].split("|")]
        title = _TITLE.fullmatch(cells[0])
        if self.scope is None:
            if title is None or len(cells) > 2:  # a title has one cell, or two
                self.broken = True
                return
            self.scope, self.config = _scope(title["scope"]), int(title["config"])
            self.title = cells[1] if len(cells) > 1 else ""
        elif not self.title and len(cells) == 1:
            self.title = cells[0]
        elif cells[0] not in ("Range", "Count"):
            row = _row(cells)
            self.broken |= row is None
            self.rows += [row] if row else []

    def table(self, complete: bool) -> Table | None:
        operation = _OPERATION.fullmatch(self.title)
        if self.scope is None or operation is None:
            return None
        local, remote = _memory(operation["local"] or ""), _memory(operation["remote"] or "")
        done = complete and not self.broken and _gapless(self.rows)
        return Table(self.scope, self.config, operation["operation"], local, remote, tuple(self.rows), done)


def parse_protocols(log: str) -> ProtocolLog:
    """Endpoint lines and tables of a log. Lines of others are passed over; a table without its end is not complete.

    UCX stamps each line of its tables. A box without stamps is ucx_perftest's own, and no fragment.
    """
    endpoints: list[Endpoint] = []
    tables: list[Table] = []
    fragments: list[str] = []
    drafts: dict[str, _Draft] = {}

    def close(process: str, complete: bool) -> None:
        draft = drafts.pop(process, None)
        if draft and (table := draft.table(complete)):
            tables.append(table)
        elif draft and process:
            fragments.append(draft.first or draft.border)

    for line in lines_of(log):
        process, said = ucx_line(line) or ("", line)
        said = said.strip()
        if match := _ENDPOINT.search(said):
            endpoints.append(Endpoint(_scope(match["scope"]), int(match["config"]), _features(match["features"])))
        elif _BORDER.fullmatch(said):
            draft = drafts.get(process)
            if draft and draft.rows:
                # Cut off in its last border: as good as whole, but then the log is not.
                close(process, complete=len(said) == len(draft.border))
            elif draft is None or draft.scope is None:
                close(process, complete=False)
                drafts[process] = _Draft(said)
        elif said.startswith("|") and process in drafts:
            drafts[process].add(said)
        elif said.startswith("|") and process:
            fragments.append(said)
    for process in list(drafts):
        close(process, complete=False)
    return ProtocolLog(tuple(endpoints), tuple(tables), tuple(fragments))


def _gapless(rows: list[Row]) -> bool:
    starts = [0.0, *(row.last + 1 for row in rows)]
    return bool(rows) and all(row.first == start for row, start in zip(rows, starts, strict=False))


def _row(cells: list[str]) -> Row | None:
    count = None
    if len(cells) == 4:  # Count, Range, Description, Config
        if not cells[0].isdecimal():
            return None
        count, cells = int(cells[0]), cells[1:]
    span = _RANGE.fullmatch(cells[0])
    if len(cells) != 3 or span is None:
        return None
    last = span["last"] or span["first"]
    return Row(_size(span["first"]), math.inf if last == "inf" else _size(last), cells[1], parse_lanes(cells[2]), count)


def _size(text: str) -> int:
    return int(text[:-1]) * _UNIT[text[-1]] if text[-1] in _UNIT else int(text)


def _memory(text: str) -> Memory:
    match = _MEMORY.fullmatch(text)
    return Memory(match["kind"], match["device"] or "") if match else Memory(text)


def _features(text: str) -> dict[str, tuple[Lane, ...]]:
    return {
        match["feature"]: tuple(lane for name in match["lanes"].split() for lane in parse_lanes(name).lanes)
        for match in _FEATURE.finditer(text)
    }


def _scope(text: str) -> Scope:
    return "self" if text == "self" else "intra-node" if text == "intra-node" else "inter-node"
