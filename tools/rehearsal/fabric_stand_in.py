"""What pods of the fabric inspector and of the RDMA gate say on simulated nodes, where a test has not said otherwise.

STAND-IN: the node is `stand_in_node.json`, made of the description of a DigitalOcean node in
tests/unit/serving/fabric_nodes/doks.yaml, with a kernel that has dma-buf and a render group (neither is known of those
nodes). The gate's logs are made up as well (perftest_logs.py): every run passes, and no byte has moved. With
PD_REHEARSAL_LANE=tcp/eth0 in the environment they are those of transfers over TCP, and the gate fails.
"""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from serving.fabric.node import NodeFabric
from serving.kubernetes_names import FABRIC_INSPECTOR, RDMA_GATE
from serving.rdma_gate.framing import mark
from serving.rdma_gate.run import runs_of
from tools.rehearsal.perftest_logs import ITERATIONS, MESSAGE_SIZE, side_log
from tools.rehearsal.pods import Play

LANE_VARIABLE = "PD_REHEARSAL_LANE"  # of every transfer of a rehearsed gate, as UCX names it
NODE = Path(__file__).with_name("stand_in_node.json")
_ENVIRONMENT = "UCX_TLS=rc,sm,self,rocm_copy,rocm_ipc UCX_ROCM_COPY_DMABUF=y"
_GATE_SECONDS = 0.2


def stand_in_node() -> NodeFabric:
    return NodeFabric.model_validate_json(NODE.read_text())


def inspector_log(fabric: NodeFabric) -> str:
    """As `python -m serving.fabric inspect --format json --stay` writes it."""
    return fabric.model_dump_json() + "\n"


def gate_log(
    side: str, devices: Sequence[str], memory: str = "rocm", lane: str = "rc_mlx5/{}/path0", **said: Any
) -> str:
    """As serving/rdma_gate/run.py writes it at one side. lane: of the device `{}`. said: see `side_log`."""
    lines: list[str] = []
    for run in runs_of(devices, "host"):
        lanes = [lane.format(device) for device in run.devices]
        each = -(-MESSAGE_SIZE * ITERATIONS // len(run.devices))
        counted = dict.fromkeys(run.devices, each) if side == "client" else None
        log = side_log(side, lanes, **{"memory": memory, "environment": _ENVIRONMENT, **said})
        lines.append(mark("begin", run=run.name, devices=run.devices, gpu=run.gpu))
        lines.append(log.rstrip("\n"))
        lines.append(mark("end", run=run.name, exit_code=0, rdma_bytes=counted))
    return "\n".join([*lines, mark("done"), ""])


def play_of(component: str, pod: str, node: str, command: Sequence[str]) -> Play | None:
    """What such a pod does by itself; None for pods of other components."""
    if component == FABRIC_INSPECTOR:
        return Play(pod, log=inspector_log(stand_in_node().model_copy(update={"hostname": node})))
    if component == RDMA_GATE:
        options = dict(pairwise(command))
        side = options["serving.rdma_gate.run"]
        lane = os.environ.get(LANE_VARIABLE, "")
        # UCX's own words for a read that TCP cannot do without copies (captured, tests/unit/serving/ucx_logs).
        said = {"lane": lane, "description": "software emulation"} if lane else {}
        log = gate_log(side, options["--devices"].split(","), options["--memory"], **said)
        return Play(pod, log=log, outcome="succeeded", after_s=_GATE_SECONDS)
    return None
