"""One run of the gate as it was asked for and as it went, and the verdict on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from serving.rdma_gate.floor import MemoryKind

Outcome = Literal["pass", "fail"]
GpuDirect = Literal["direct", "staged", "unknown"]
SideName = Literal["client", "server"]

# What a verdict looks at, the most telling first: the reason of a failed run is its first finding in this order.
Check = Literal[
    "nodes",
    "problem",
    "scope",
    "memory",
    "protocol",
    "lane",
    "device",
    "share",
    "table",
    "settings",
    "figures",
    "exit",
    "log",
    "bandwidth",
]
CHECKS: tuple[Check, ...] = get_args(Check)


@dataclass(frozen=True)
class Side:
    """One process. log: stdout and stderr, and `exit code N` written by the runner as the last line.

    node: the Kubernetes node it ran on. exit_code: as the container's status has it; None if it was killed or never
    ended.
    """

    log: str
    exit_code: int | None
    node: str


@dataclass(frozen=True)
class GateRun:
    """`ucx_perftest -t ucp_get` between two pods. Both ran with UCX_LOG_LEVEL=info and UCX_PROTO_INFO=y.

    devices: all that must be used, as UCX names them (`mlx5_0:1`). memory: of both ends. message_size: bytes.
    iterations: messages, those of the warm-up apart. floor: MiB/s. emulation_off: UCX_PROTO_EMULATION_ENABLE=n was set
    (UCX 1.21 and later know it). line_rate: Gb/s that cannot be exceeded, if known. rdma_bytes: by how much the
    client's RDMA receive counters grew during the run, named as in devices -> bytes, if all of them count; only they
    can show the lanes that UCX's table has no room for.
    hardware: devices that the fabric inspector found to be NICs; without it (None) they are known by their names.
    """

    devices: tuple[str, ...]
    memory: MemoryKind
    message_size: int
    iterations: int
    client: Side
    server: Side
    floor: float
    emulation_off: bool = False
    line_rate: float | None = None
    rdma_bytes: Mapping[str, int] | None = None
    hardware: frozenset[str] | None = None


@dataclass(frozen=True)
class Finding:
    """Something that speaks against the run. text names the device, the lane or the figure."""

    check: Check
    side: SideName | None
    text: str

    def __str__(self) -> str:
        return f"{self.side}: {self.text}" if self.side else self.text


@dataclass(frozen=True)
class Cause:
    """Why it probably failed, and what to do."""

    what: str
    fix: str


@dataclass(frozen=True)
class DeviceLanes:
    """What the client's open row says of one device. lanes: `rc_mlx5/mlx5_0:1/path0`. share: % of the bytes, if told.

    bytes: counted, if they were. A device that was asked for and not used has no lanes.
    """

    device: str
    lanes: tuple[str, ...]
    share: int | None
    bytes: int | None


@dataclass(frozen=True)
class Verdict:
    """outcome `pass` only with positive evidence from start to end. reason: one line.

    bandwidth_mib_s and bandwidth_gbps: of the client's final figures, whatever they are worth; None without them.
    gpu_direct: whether NIC and GPU exchanged the data without host memory; unknown for host memory or without a table.
    """

    outcome: Outcome
    reason: str
    findings: tuple[Finding, ...]
    devices: tuple[DeviceLanes, ...]
    bandwidth_mib_s: float | None
    bandwidth_gbps: float | None
    gpu_direct: GpuDirect
    cause: Cause | None
