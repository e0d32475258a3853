"""`python -m serving.rdma_gate.run`: one end of the RDMA gate between two nodes. Standard library only.

It runs `ucx_perftest` once for each NIC, with that NIC alone, and once over all of them; the other end does the same in
the same order. What UCX wrote goes to stdout in a frame (framing.py), for the judge (verdict.py) on another machine.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from serving.rdma_gate.framing import mark, quoted
from serving.rdma_gate.nearest_gpu import nearest_gpu

ALL = "all"  # the run over every NIC
PORT = 13337  # ucx_perftest's own; run i takes the i-th from here
MESSAGE_SIZE = 268_435_456  # bytes; large, as KV is read in few and large pieces
ITERATIONS = 100  # 27 GB, a second at 200 Gb/s
_WARM_UP = 5  # ucx_perftest's default is 10,000 messages
RUN_SECONDS = 60.0  # a path that takes longer (3.6 Gb/s) is no RDMA, and its tables are in the log by then
# The server may still wait for the run before, whose client failed: longer than it waits for one.
_SERVER_SECONDS = RUN_SECONDS + 30
_REFUSED_SECONDS = _SERVER_SECONDS + 10
FIRST_SECONDS = 300.0  # until the client's pod has started
_RETRY_SECONDS = 0.5
_REFUSED = "Connection refused"  # strerror(ECONNREFUSED), which ucx_perftest prints


@dataclass(frozen=True)
class Run:
    """name: of the NIC, or ALL. index: which port it takes. gpu: HIP's index; None leaves it to ucx_perftest."""

    name: str
    devices: tuple[str, ...]
    index: int
    gpu: int | None = None

    def environment(self) -> dict[str, str]:
        own = {"UCX_NET_DEVICES": ",".join(self.devices), "UCX_LOG_LEVEL": "info", "UCX_PROTO_INFO": "y"}
        if len(self.devices) > 1:
            own["UCX_MAX_RMA_RAILS"] = str(len(self.devices))  # UCX's default is one NIC for each transfer
        return own if self.gpu is None else {**own, "HIP_VISIBLE_DEVICES": str(self.gpu)}


def runs_of(devices: Sequence[str], memory: str, sys_folder: Path = Path("/sys")) -> list[Run]:
    """Each NIC alone, then all: the same list at both ends, but for the GPUs."""
    runs: list[Run] = []
    for index, device in enumerate(devices):
        gpu = nearest_gpu(device.partition(":")[0], index, sys_folder) if memory == "rocm" else None
        runs.append(Run(device, (device,), index, gpu))
    return runs if len(runs) == 1 else [*runs, Run(ALL, tuple(devices), len(runs))]


def deadline_seconds(devices: int) -> int:
    """The most that a pod of the gate takes, start of its peer included."""
    runs = devices + (devices > 1)
    return round(FIRST_SECONDS + runs * (_REFUSED_SECONDS + RUN_SECONDS))


def received(devices: Sequence[str], sys_folder: Path = Path("/sys")) -> dict[str, int] | None:
    """Bytes that each device has received by RDMA so far; None when one of them does not count.

    `port_rcv_data` counts words of 4 bytes; on mlx5 those of RDMA alone (mlx5_ib, pma_cnt_ext_assign).
    """
    found: dict[str, int] = {}
    for device in devices:
        name, _, port = device.partition(":")
        file = sys_folder / "class/infiniband" / name / "ports" / (port or "1") / "counters/port_rcv_data"
        try:
            found[device] = 4 * int(file.read_text())
        except (OSError, ValueError):
            return None
    return found


def serve(runs: Sequence[Run]) -> None:
    """The end that is read from."""
    for run in runs:
        limit = FIRST_SECONDS if run.index == 0 else _SERVER_SECONDS
        _begin(run)
        code, output = _perftest(run, [], limit)
        _end(run, code, output, None)


def read(runs: Sequence[Run], peer: str, memory: str, sys_folder: Path = Path("/sys")) -> None:
    """The end that reads. When the server is not there for one run, it is for none that follows."""
    arguments = [peer, "-t", "ucp_get", "-m", memory, "-s", str(MESSAGE_SIZE)]
    arguments += ["-n", str(ITERATIONS), "-w", str(_WARM_UP)]
    for run in runs:
        _begin(run)
        give_up = time.monotonic() + _REFUSED_SECONDS
        while True:
            before = received(run.devices, sys_folder)
            code, output = _perftest(run, arguments, RUN_SECONDS)
            refused = code not in (0, None) and _REFUSED in output
            if not refused or time.monotonic() > give_up:
                break
            time.sleep(_RETRY_SECONDS)
        after = received(run.devices, sys_folder)
        grown = {name: after[name] - before[name] for name in before} if before and after else None
        _end(run, code, output, grown)
        if refused:
            return


def _perftest(run: Run, arguments: Sequence[str], limit: float) -> tuple[int | None, str]:
    """(exit code, output) of one ucx_perftest; None when it was killed at its limit of seconds."""
    # A pipe makes stdout fully buffered: what a killed process had still to write would be lost.
    words = [*(["stdbuf", "-oL"] if shutil.which("stdbuf") else []), "ucx_perftest"]
    words += [*arguments, "-p", str(PORT + run.index)]
    try:
        process = subprocess.Popen(
            words,
            env={**os.environ, **run.environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return 127, f"UCX  ERROR ucx_perftest cannot be started: {error}"
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    finally:  # a SIGTERM raises here
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _begin(run: Run) -> None:
    print(mark("begin", run=run.name, devices=run.devices, gpu=run.gpu), flush=True)


def _end(run: Run, code: int | None, output: str, grown: dict[str, int] | None) -> None:
    sys.stdout.write(quoted(output))
    print(f"exit code {-signal.SIGKILL if code is None else code}")
    print(mark("end", run=run.name, exit_code=code, rdma_bytes=grown), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m serving.rdma_gate.run", description=__doc__)
    parser.add_argument("side", choices=["server", "client"])
    parser.add_argument("--devices", required=True, help="as UCX names them: mlx5_0:1,mlx5_1:1")
    parser.add_argument("--memory", required=True, choices=["rocm", "cuda", "host"])
    parser.add_argument("--peer", default="", help="client: the server's address")
    options = parser.parse_args(arguments)
    # Process 1 of a container hears of no signal that it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    runs = runs_of(options.devices.split(","), options.memory)
    if options.side == "server":
        serve(runs)
    else:
        read(runs, options.peer, options.memory)
    print(mark("done"), flush=True)
    return 0  # how a run went is for the judge to say


if __name__ == "__main__":
    sys.exit(main())
