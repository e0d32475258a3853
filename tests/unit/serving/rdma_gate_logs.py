"""Captured logs by name, and hand-made ones in UCX's layouts of a run on hardware that is not here.

SYNTHETIC: what `both_sides` writes was never printed by a run on RDMA NICs and GPU memory. Its tables are held against
real ones in test_rdma_tables.py.
"""

import dataclasses
from pathlib import Path
from typing import Any

from serving.rdma_gate.floor import MemoryKind, default_floor
from serving.rdma_gate.gate_run import GateRun, Side

LOGS = Path(__file__).with_name("ucx_logs")
NICS = tuple(f"mlx5_{index}:1" for index in range(8))
ENVIRONMENT = "UCX_TLS=rc,sm,self,rocm_copy,rocm_ipc UCX_PROTO_EMULATION_ENABLE=n UCX_ROCM_COPY_DMABUF=y"
MESSAGE_SIZE = 268_435_456
ITERATIONS = 100
LINK_GBPS = 400
LONGEST_CONFIG = 127  # as in the captures *_eight_lanes_client.log

Rows = list[tuple[str, str, str]]


def capture(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


def lane_list(lanes: list[str]) -> str:
    """Lanes as UCX lists them: equal shares rounded up, the last has the rest, cut at 127 characters."""
    if len(lanes) == 1:
        return lanes[0][:LONGEST_CONFIG]
    share = -(-100 // len(lanes))
    shares = [share] * (len(lanes) - 1) + [100 - share * (len(lanes) - 1)]
    listed = [f"{part}% on {lane}" for part, lane in zip(shares, lanes, strict=True)]
    return (", ".join(listed[:-1]) + f" and {listed[-1]}")[:LONGEST_CONFIG].rstrip()


def new_table(title: str, operation: str, rows: Rows) -> list[str]:
    """The layout from 1.22 on: a title of two rows, a header."""
    header = ("Range", "Description", "Config")
    widths = [max(len(header[column]), *(len(row[column]) for row in rows)) for column in range(3)]
    widths[2] = max(widths[2], len(operation) - widths[0] - widths[1] - 6, len(title) - widths[0] - widths[1] - 6)
    inner = sum(widths) + 6
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    cells = [f"| {a:>{widths[0]}} | {b:<{widths[1]}} | {c:<{widths[2]}} |" for a, b, c in rows]
    names = " | ".join(f"{name:^{width}}" for name, width in zip(header, widths, strict=True))
    return [
        border,
        f"| {title:<{inner}} |",
        f"| {operation:<{inner}} |",
        border,
        f"| {names} |",
        border,
        *cells,
        border,
    ]


def old_table(title: str, operation: str, rows: Rows) -> list[str]:
    """The layout up to 1.21: a title of one row with two cells."""
    first = max(len(title), *(len(row[0]) for row in rows))
    last = max(len(row[2]) for row in rows)
    middle = max(*(len(row[1]) for row in rows), len(operation) - last)
    top = f"+{'-' * (first + 2)}+{'-' * (middle + last + 5)}+"
    border = f"+{'-' * (first + 2)}+{'-' * (middle + 2)}+{'-' * (last + 2)}+"
    cells = [f"| {a:>{first}} | {b:<{middle}} | {c:<{last}} |" for a, b, c in rows]
    return [top, f"| {title:>{first}} | {operation:<{middle + last + 3}} |", border, *cells, border]


def side_log(
    side: str,
    lanes: list[str],
    *,
    memory: str = "rocm",
    scope: str = "inter-node",
    description: str = "zero-copy",
    layout: str = "new",
    bandwidth: float = 45_000.0,
    environment: str = ENVIRONMENT,
    exit_code: int = 0,
) -> str:
    """One side of a run with a `get` and a `put` table."""
    stamp = f"[1795986420.176238] [{side}:1395 :0]"
    local = "host memory" if memory == "host" else f"{memory}/GPU0"
    table = new_table if layout == "new" else old_table
    title = f"perftest {scope} cfg#2"
    read = f"remote memory read by ucp_get*(multi) into {local} from {memory}"
    rows = [("0..64", "copy-out", lanes[0]), ("65..inf", description, lane_list(lanes))]
    write = table(title, f"remote memory write by ucp_put*(multi) from {local} to {memory}", [("0..inf", *rows[1][1:])])
    said = [
        f"{stamp}     ucp_context.c:2725 UCX  INFO  Version 1.22.0 (loaded from /opt/ucx/lib/libucp.so.0)",
        f"{stamp}          parser.c:2587 UCX  INFO  UCX_* env variables: {environment}",
        f"{stamp}      ucp_worker.c:1991 UCX  INFO    perftest {scope} cfg#2 rma({lanes[0]})",
        *(f"{stamp}   {line}" for line in write + table(title, read, rows)),
    ]
    head = capture("ucx-1.22.0_case1_rc_1M_server").splitlines()[2:13]
    box = "\n".join(head).replace("memory:  host", f"memory:  {memory}").replace("1048576", str(MESSAGE_SIZE))
    if side == "server":
        return "\n".join([box, *said, f"exit code {exit_code}", ""])
    figures = f"{ITERATIONS:>21}   5688.000  5688.889  5688.889 {bandwidth:>11.2f} {bandwidth:>10.2f}"
    final = f"Final: {figures}         176         176"
    return "\n".join([*said, final, f"exit code {exit_code}", ""])


def gate_run(
    devices: tuple[str, ...] = ("mlx5_0:1",),
    lanes: list[str] | None = None,
    *,
    counted: bool | None = None,
    client_log: str | None = None,
    server_log: str | None = None,
    **said: Any,
) -> GateRun:
    """A run that passes: every device over rc_mlx5. `said` goes to both logs; counted: with the NICs' counters."""
    lanes = lanes or [f"rc_mlx5/{device}/path0" for device in devices]
    memory: MemoryKind = "rocm"
    moved = MESSAGE_SIZE * ITERATIONS
    with_counters = len(devices) > 4 if counted is None else counted
    return GateRun(
        devices=devices,
        memory=memory,
        message_size=MESSAGE_SIZE,
        client=Side(client_log or side_log("client", lanes, **said), 0, "gpu-node-a"),
        server=Side(server_log or side_log("server", lanes, **said), 0, "gpu-node-b"),
        floor=default_floor(LINK_GBPS, len(devices), memory),
        emulation_off=True,
        rdma_bytes={device: -(-moved // len(devices)) for device in devices} if with_counters else None,
    )


def with_log(run: GateRun, side: str, log: str) -> GateRun:
    """The run with another log on one side, or on both."""
    client = dataclasses.replace(run.client, log=log) if side in ("client", "both") else run.client
    server = dataclasses.replace(run.server, log=log) if side in ("server", "both") else run.server
    return dataclasses.replace(run, client=client, server=server)
