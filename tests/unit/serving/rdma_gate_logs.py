"""Captured logs by name, and hand-made ones in UCX's layouts of a run on hardware that is not here.

SYNTHETIC: what `both_sides` writes was never printed by a run on RDMA NICs and GPU memory. Its tables are held against
real ones in test_rdma_tables.py.
"""

import dataclasses
from pathlib import Path
from typing import Any

from serving.rdma_gate.floor import MemoryKind, default_floor
from serving.rdma_gate.gate_run import GateRun, Side
from tools.rehearsal.perftest_logs import ENVIRONMENT as ENVIRONMENT
from tools.rehearsal.perftest_logs import ITERATIONS, MESSAGE_SIZE, side_log
from tools.rehearsal.perftest_logs import LONGEST_CONFIG as LONGEST_CONFIG
from tools.rehearsal.perftest_logs import lane_list as lane_list
from tools.rehearsal.perftest_logs import new_table as new_table
from tools.rehearsal.perftest_logs import old_table as old_table

LOGS = Path(__file__).with_name("ucx_logs")
NICS = tuple(f"mlx5_{index}:1" for index in range(8))
LINK_GBPS = 400


def capture(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


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
    with_counters = len(devices) > 1 if counted is None else counted
    return GateRun(
        devices=devices,
        memory=memory,
        message_size=MESSAGE_SIZE,
        iterations=ITERATIONS,
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
