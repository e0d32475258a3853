"""One rate of the client's ceiling: what AIPerf, the server and the machine say of it."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import requests

from benchmarks.metrics import parse
from benchmarks.records import RECORDS_FILE
from benchmarks.target import Target
from tools.toolchain.versions import ROOT

RECORDS = f"*/*/rates/*/aiperf/{RECORDS_FILE}"
OUTPUT = "output"
WARMUP_S = 2.0
# A client keeps up with a rate when its p90 lateness is below the first, and what it sends above the second share of
# the rate, less three standard errors of as many Poisson arrivals.
LATE_MS, SENT = 10.0, 0.95


@dataclass(frozen=True)
class Row:
    """One rate. Rates in req/s, times in ms.

    requests: the measured ones of all that were sent. late: from the moment AIPerf issues one to its being sent. added:
    AIPerf's time to first token less the server's, which is from a request's headers to the first token written.
    server_late: how much later than its model the server wrote first tokens. cpu: of all AIPerf processes for each
    request, while requests are answered; 0 where that was too short to tell. others: cores that everything else on the
    machine took during the whole benchmark run, on average.
    """

    offered: float
    sent: int
    requests: int
    failed: int
    achieved: float
    late_p50: float
    late_p90: float
    late_max: float
    added_p50: float
    added_p90: float
    server_late_p90: float
    cpu: float
    others: float

    @property
    def keeps_up(self) -> bool:
        """Whether the client offered what it was told to."""
        scatter = 3 / self.requests**0.5
        return not self.failed and self.late_p90 <= LATE_MS and self.achieved >= self.offered * (SENT - scatter)


@dataclass(frozen=True)
class Spent:
    """Seconds: of the wall clock, and of CPU by the client, the server and the whole machine."""

    wall: float
    client: float
    server: float
    machine: float

    def others_since(self, earlier: Spent) -> float:
        """Cores that everything else took since then."""
        own = self.client + self.server - earlier.client - earlier.server
        return max(0.0, self.machine - earlier.machine - own) / (self.wall - earlier.wall)


def watch(command: Sequence[str], folder: Path) -> list[tuple[int, float]]:
    """Run the benchmark; (answers recorded, CPU seconds of its children so far), twice a second once there are any."""
    progress: list[tuple[int, float]] = []
    with (folder / OUTPUT).open("wb") as output:
        process = psutil.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        try:
            while process.poll() is None:
                lines = sum(file.read_bytes().count(b"\n") for file in folder.glob(RECORDS))
                if lines:
                    progress.append((lines, _cpu_of_children(process)))
                time.sleep(0.5)
        finally:
            if process.poll() is None:
                process.terminate()  # it ends AIPerf then
                process.wait()
    return progress


def _cpu_of_children(process: psutil.Process) -> float:
    used = 0.0
    with contextlib.suppress(psutil.Error):  # it has just ended, and so will the watching
        for child in process.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                times = child.cpu_times()
                used += times.user + times.system
    return used


def cost(progress: Sequence[tuple[int, float]]) -> float:
    """CPU milliseconds for each answer: the slope while answers come in. 0 when fewer than three points say so."""
    last = max((lines for lines, _ in progress), default=0)
    points = [(lines, used) for lines, used in progress if lines < last]
    if len({lines for lines, _ in points}) < 3:
        return 0.0
    return 1000 * float(np.polyfit([lines for lines, _ in points], [used for _, used in points], 1)[0])


def summarize(
    rate: float, sent: Sequence[dict[str, Any]], served: Sequence[dict[str, Any]], cpu: float, others: float
) -> Row:
    """One rate from AIPerf's records and from what the server saw, which are matched by X-Request-ID."""
    known, every = {one["id"]: one for one in served}, len(sent)
    sent = sorted(sent, key=lambda record: record["metadata"]["request_start_ns"])
    sent = sent[min(round(rate * WARMUP_S), len(sent) // 2) :]
    late: list[float] = []
    added: list[float] = []
    failed = 0
    for record in sent:
        about, ttft = record["metadata"], record["metrics"].get("time_to_first_token")
        late.append((about["request_start_ns"] - about["credit_issued_ns"]) / 1e6)
        one = known.get(about["x_request_id"])
        if record.get("error") or ttft is None or one is None:
            failed += 1
        else:
            added.append(ttft["value"] - (one["first_ns"] - one["arrived_ns"]) / 1e6)
    span = (sent[-1]["metadata"]["request_start_ns"] - sent[0]["metadata"]["request_start_ns"]) / 1e9
    server_late = [one["late_first_s"] * 1000 for one in served]
    figures = {
        "achieved": (len(sent) - 1) / span,
        "late_p50": _quantile(late, 0.5),
        "late_p90": _quantile(late, 0.9),
        "late_max": max(late),
        "added_p50": _quantile(added, 0.5),
        "added_p90": _quantile(added, 0.9),
        "server_late_p90": _quantile(server_late, 0.9),
        "cpu": cpu,
        "others": others,
    }
    rounded = {name: round(value, 2) for name, value in figures.items()}
    return Row(offered=rate, sent=every, requests=len(sent), failed=failed, **rounded)


def spent(target: Target) -> Spent:
    """Until now."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)  # those that have ended, and theirs
    text = requests.get(f"{target.url}/metrics", timeout=30).text
    server = parse(text).total("simulated_cpu_seconds_total") or 0.0
    machine = psutil.cpu_times()
    busy = sum(machine) - machine.idle - machine.iowait
    return Spent(time.monotonic(), children.ru_utime + children.ru_stime, server, busy)


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else 0.0
