"""What one side of one `ucx_perftest` run said of itself: figures, settings, and everything that went wrong."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from serving.rdma_gate.log_text import lines_of, ucx_line

# What went wrong, the most telling first: a line of UCX is of the first kind whose text it has.
ProblemKind = Literal[
    "not-started",
    "dmabuf-missing",
    "device-missing",
    "transport-missing",
    "registration",
    "path-broken",
    "transfer",
    "no-zero-copy",
    "unreachable",
    "crashed",
    "error",
]
PROBLEM_KINDS: tuple[ProblemKind, ...] = get_args(ProblemKind)

# Seen in captures (tests/unit/serving/ucx_logs): device, transport, transfer, zero-copy, unreachable. Read in ucx:
# dma-buf (rocm_copy_md.c), retry count (ib_mlx5_log.c); in reports: registration (ucx #9589). The rest is kept wide.
_KINDS: tuple[tuple[ProblemKind, re.Pattern[str]], ...] = (
    ("not-started", re.compile(r"ucx_perftest cannot be started")),  # run.py
    ("dmabuf-missing", re.compile(r"dmabuf support requested but not found")),
    ("device-missing", re.compile(r"network devices? (?P<subject>'.+?) (?:is|are) not available")),
    ("transport-missing", re.compile(r"transports? (?P<subject>'.+?) (?:is|are) not available")),
    ("registration", re.compile(r"ibv_reg(?:_dmabuf)?_mr\(.*failed|failed to register (?:address|memory)", re.I)),
    (
        "path-broken",
        re.compile(r"retry count(?:er)? exceeded|modify[_ ]qp|\bgid\b.*(?:invalid|not found|failed)", re.I),
    ),
    # With rc_verbs in libibverbs' words (ibv_wc_status_str), with rc_mlx5 in UCX's own, which tell the syndrome
    # (ib_mlx5_log.c; `Error on QP 0x45 wqe[17]: Remote access (synd 0x13 …)`, later without the QP).
    (
        "transfer",
        re.compile(
            r"(?:remote (?:access|operation|invalid request|aborted)|local (?:protection|access|length|QP operation)"
            r"|bad response|memory management operation|response timeout|request flushed) error"
            r"|\(synd 0x|Error on QP 0x",
            re.I,
        ),
    ),
    ("no-zero-copy", re.compile(r"No zero-copy protocol found")),
    ("unreachable", re.compile(r"[Dd]estination is unreachable|remote memory is unreachable|no .+ transport to ")),
)
_SAID = re.compile(r"UCX  (?P<level>FATAL|ERROR|WARN|DIAG|INFO)\s+(?P<text>.*)$")
_VERSION = re.compile(r"Version (?P<version>\d+\.\d+\.\d+)")
_ENVIRONMENT = re.compile(r"UCX_\* env variables?: (?P<variables>.*)$")
_NOT_LOADED = re.compile(r"error while loading shared libraries")  # ld.so
_CRASH = re.compile(r"Caught signal|Segmentation fault|Bus error|Assertion .* failed|^Killed$|core dumped", re.I)
_HEADER = re.compile(r"\| (?P<key>Test|Send memory|Recv memory|Message size): +(?P<value>.*?) *\|")
_NUMBER = r"(?P<{}>\d+(?:\.\d+)?)"
_COLUMNS = ("iterations", "percentile", "latency", "overall_latency", "bandwidth", "overall", "rate", "overall_rate")
_CSV = re.compile(r"\s*" + ",".join(_NUMBER.format(name) for name in _COLUMNS))
# Up to 1.22 blanks between the numbers; later masters print the row with the table's bars.
_FINAL = re.compile(r"\|? *Final:[ |]+" + r"[ |]+".join(_NUMBER.format(name) for name in _COLUMNS) + r"[ |]*")
_CSV_HEADER = re.compile(r"iterations,[\d.]+_percentile_lat,.*overall_bw,.*")
# The runner ends each log with it, which proves that nothing behind was cut off.
_EXIT = re.compile(r"exit code (?P<code>-?\d+)")


@dataclass(frozen=True)
class Problem:
    """kind: what it means. text: UCX's words. subject: the device or transport that is missing, if it says so."""

    kind: ProblemKind
    text: str
    subject: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figures:
    """Final figures. bandwidth: MiB/s over the whole run (UCX writes "MB/s"). latency: microseconds per message."""

    iterations: int
    bandwidth: float
    latency: float


@dataclass(frozen=True)
class PerftestLog:
    """One side. finals: one in a whole client's log, none in a server's. exit_code: of the runner's last line.

    header: what the server prints of the test it was asked for. environment: the UCX_* variables that UCX read.
    """

    finals: tuple[Figures, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    version: str | None
    environment: dict[str, str]
    header: dict[str, str]
    exit_code: int | None


def parse_perftest(log: str) -> PerftestLog:
    """Read one side's log. Problems are UCX's lines of level ERROR and FATAL, and others that tell of a failure."""
    finals: list[Figures] = []
    problems: list[Problem] = []
    warnings: list[str] = []
    version: str | None = None
    environment: dict[str, str] = {}
    header: dict[str, str] = {}
    csv = False
    written = [line for line in lines_of(log) if line.strip()]
    for line in written:
        stamped = ucx_line(line)
        text = (stamped[1] if stamped else line).strip()
        said = _SAID.search(text)
        if said:
            problem = _problem(said["level"], said["text"].strip())
            problems += [problem] if problem else []
            warnings += [said["text"].strip()] if said["level"] == "WARN" else []
            if found := _VERSION.match(said["text"]):
                version = found["version"]
            if found := _ENVIRONMENT.match(said["text"]):
                pairs = (pair.partition("=") for pair in found["variables"].split())
                environment |= {name: value for name, _, value in pairs}
        elif _NOT_LOADED.search(text):
            problems.append(Problem("not-started", text))
        elif _CRASH.search(text):
            problems.append(Problem("crashed", text))
        elif match := _HEADER.fullmatch(text):
            header[match["key"]] = match["value"]
        elif _CSV_HEADER.fullmatch(text):
            csv = True
        elif match := _FINAL.fullmatch(text) or (_CSV.fullmatch(text) if csv else None):
            finals.append(Figures(int(match["iterations"]), float(match["overall"]), float(match["overall_latency"])))
    last = _EXIT.fullmatch(written[-1].strip()) if written else None
    return PerftestLog(
        finals=tuple(finals),
        problems=tuple(problems),
        warnings=tuple(warnings),
        version=version,
        environment=environment,
        header=header,
        exit_code=int(last["code"]) if last else None,
    )


def _problem(level: str, text: str) -> Problem | None:
    """A failed transfer is only DIAG, and a missing device or transport only WARN."""
    for kind, pattern in _KINDS:
        if (match := pattern.search(text)) and level != "INFO":
            subject = match.groupdict().get("subject") or ""
            return Problem(kind, text, tuple(re.findall(r"'([^']+)'", subject)))
    return Problem("error", text) if level in ("ERROR", "FATAL") else None
