"""Whether one side's protocol tables show the path that was asked for: memory, protocol, lanes, devices."""

import math
import re
from collections.abc import Iterator

from serving.rdma_gate.gate_run import Finding, GateRun, GpuDirect, SideName
from serving.rdma_gate.ucx_lanes import Lane
from serving.rdma_gate.ucx_tables import ProtocolLog, Row, Table

READ = "remote memory read"
# Only mlx5 hardware has the interface behind the mlx5 transports; any driver, Soft-RoCE too, has that behind rc_verbs.
_MLX5_TRANSPORTS = ("rc_mlx5", "dc_mlx5")
_RDMA_TRANSPORTS = (*_MLX5_TRANSPORTS, "rc_verbs")
# Names that hardware drivers give (linux: mlx5, ionic, bnxt_re) and that rdma-core's udev rules make of a PCI address.
_HARDWARE = re.compile(r"(?:mlx5_|ionic_|bnxt_re|rocep|ibp)\w+(?::\d+)?")
_SOFTWARE = re.compile(r"(?:rxe|siw)")  # linux: drivers/infiniband/sw


def reads(protocols: ProtocolLog) -> list[Table]:
    return [table for table in protocols.tables if table.operation == READ]


def asked_reads(run: GateRun, protocols: ProtocolLog) -> list[Table]:
    """The tables that tell how remote memory of the asked kind is read from another node."""
    return [
        table
        for table in reads(protocols)
        if table.scope == "inter-node" and table.local.kind == table.remote.kind == run.memory
    ]


def check_path(run: GateRun, side: SideName, protocols: ProtocolLog) -> Iterator[Finding]:
    """What speaks against the path that this side's tables show."""
    for scope, config, lanes in _near(protocols):
        yield Finding("scope", side, f"both ends are on one node: {scope} cfg#{config} over {lanes}")
    for endpoint in protocols.endpoints:
        for feature, lanes in endpoint.features.items():
            for lane in lanes:
                if lane.transport == "tcp" and feature.startswith("rma"):
                    yield Finding("lane", side, f"remote memory goes over {lane} (endpoint, {feature})")
    for fragment in protocols.fragments[:1]:
        yield Finding("table", side, f"a table of UCX lacks lines, from {' '.join(fragment.split())[:60]!r} on")
    asked = asked_reads(run, protocols)
    for table in reads(protocols):
        if table.scope == "inter-node" and table not in asked:
            kinds = f"into {table.local.kind} from {table.remote.kind}"
            yield Finding("memory", side, f"{READ} {kinds} memory, {run.memory} was asked for")
    if not asked:
        yield Finding("table", side, f"no table of an inter-node {READ} into {run.memory} from {run.memory}")
    for table in asked:
        yield from _check_table(run, side, table)


def gpu_direct(run: GateRun, sides: tuple[ProtocolLog, ProtocolLog]) -> GpuDirect:
    """direct: every table's open row lets the NIC read GPU memory itself. staged: one copies or emulates."""
    tables = [asked_reads(run, protocols) for protocols in sides]
    rows = [table.row_for(math.inf) for found in tables for table in found]
    if run.memory == "host" or not rows or any(row is None for row in rows):
        return "unknown"
    if not all(_zero_copy(row) for row in rows if row):
        return "staged"
    rdma = all(lane.transport in _RDMA_TRANSPORTS for row in rows if row for lane in row.lanes.lanes)
    return "direct" if rdma and all(tables) else "unknown"


def _near(protocols: ProtocolLog) -> Iterator[tuple[str, int, str]]:
    for table in reads(protocols):
        if table.scope != "inter-node":
            open_row = table.row_for(math.inf)
            yield table.scope, table.config, str(open_row.lanes) if open_row else "?"
    for endpoint in protocols.endpoints:
        if endpoint.scope != "inter-node":
            lanes = ", ".join(str(lane) for used in endpoint.features.values() for lane in used)
            yield endpoint.scope, endpoint.config, lanes


def _check_table(run: GateRun, side: SideName, table: Table) -> Iterator[Finding]:
    where = f"cfg#{table.config}"
    if not table.complete:
        yield Finding("table", side, f"the table of {where} is cut off, lacks rows or is of an unknown form")
    open_row = table.row_for(math.inf)
    own_row = table.row_for(run.message_size)
    carrying = {row for row in (open_row, own_row) if row}
    if open_row is None:
        yield Finding("table", side, f"{where} has no row for messages without upper bound")
    if own_row is None:
        yield Finding("table", side, f"{where} has no row for messages of {run.message_size:,} bytes")
    for row in table.rows:
        if row in carrying:
            yield from _check_protocol(run, side, row)
        for lane in row.lanes.lanes:
            yield from _check_lane(run, side, lane)
        if not row.lanes.lanes:
            yield Finding("lane", side, f"{where} names no lane that is known")
        elif not row.lanes.complete:
            yield from _check_cut_lanes(run, side, row)
        elif row in carrying:
            used = {lane.device for lane in row.lanes.lanes}
            for device in run.devices:
                if device not in used:
                    yield Finding("device", side, f"{device} is not in use: the lanes are {row.lanes}")


def _check_protocol(run: GateRun, side: SideName, row: Row) -> Iterator[Finding]:
    if not _zero_copy(row):
        yield Finding("protocol", side, f"{run.memory} memory by {row.description!r} over {row.lanes}, not zero-copy")
    if row.count == 0 and row.first <= run.message_size <= row.last:
        yield Finding("protocol", side, f"the row of the message's size was used 0 times ({row.lanes})")


def _check_lane(run: GateRun, side: SideName, lane: Lane) -> Iterator[Finding]:
    name = lane.device.partition(":")[0]
    if lane.transport not in _RDMA_TRANSPORTS:
        yield Finding("lane", side, f"{lane} is no RDMA lane")
    elif _SOFTWARE.match(name):
        yield Finding("lane", side, f"{lane} is software RoCE, no NIC")
    elif lane.transport not in _MLX5_TRANSPORTS and not _is_hardware(run, lane.device):
        yield Finding("lane", side, f"{lane}: not known to be a NIC")
    if lane.device not in run.devices:
        yield Finding("device", side, f"{lane} is in use, {', '.join(run.devices)} was asked for")


def _is_hardware(run: GateRun, device: str) -> bool:
    """A name proves little, as any device can be given any (`rdma dev set`, udev), so it only counts where nobody
    looked."""
    return device in run.hardware if run.hardware is not None else bool(_HARDWARE.fullmatch(device))


def _check_cut_lanes(run: GateRun, side: SideName, row: Row) -> Iterator[Finding]:
    """UCX names only the first lanes, so counters have to show the rest (verdict.py)."""
    if run.rdma_bytes is not None:
        return
    named = {lane.device for lane in row.lanes.lanes}
    missing = ", ".join(device for device in run.devices if device not in named)
    # Shares are rounded up (ucp_proto_multi_scaled_length): 13 % of eight equal lanes, 15 % of seven.
    share = row.lanes.lanes[0].share
    text = f"UCX's table names only {row.lanes}; {share}% a lane is {100 // share} to {round(100 / share)} lanes"
    yield Finding("device", side, f"nothing shows that {missing or 'every device'} is in use: {text}")


def _zero_copy(row: Row) -> bool:
    # Whole, as UCX adds what it has to do besides: `zero-copy`, but `software emulation rocm_copy`, `(?) …` (a guess).
    return row.description == "zero-copy"
