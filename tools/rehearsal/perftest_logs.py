"""What the two sides of `ucx_perftest` write on RDMA NICs and GPU memory, as far as that is known. STAND-IN.

Nothing of it was printed by such hardware: tables, figures and settings are in UCX's layouts, made up here. They are
held against captured logs of other runs, and against public ones, in tests/unit/serving/test_rdma_tables.py.
"""

ENVIRONMENT = "UCX_TLS=rc,sm,self,rocm_copy,rocm_ipc UCX_PROTO_EMULATION_ENABLE=n UCX_ROCM_COPY_DMABUF=y"
MESSAGE_SIZE = 268_435_456
ITERATIONS = 100
LONGEST_CONFIG = 127  # as in the captures *_eight_lanes_client.log

Rows = list[tuple[str, str, str]]


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
    if side == "server":
        return "\n".join([*_header(memory), *said, f"exit code {exit_code}", ""])
    figures = f"{ITERATIONS:>21}   5688.000  5688.889  5688.889 {bandwidth:>11.2f} {bandwidth:>10.2f}"
    final = f"Final: {figures}         176         176"
    return "\n".join([*said, final, f"exit code {exit_code}", ""])


def _header(memory: str) -> list[str]:
    """What a server prints of the test that its client asked for."""
    told = {"API": "protocol layer", "Test": "get latency / bandwidth / message rate", "Data layout": "(automatic)"}
    told |= {"Send memory": memory, "Recv memory": memory, "Message size": str(MESSAGE_SIZE), "Window size": "1"}
    border = f"+{'-' * 106}+"
    lines = [f"| {f'{key}:':<13} {value:<90} |" for key, value in told.items()]
    return ["Waiting for connection...", "Accepted connection from 10.10.0.2:52516", border, *lines, border]
