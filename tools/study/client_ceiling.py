"""What AIPerf can offer, and what it adds: `python -m tools.study.client_ceiling`, about ten minutes on 2 cores.

The whole benchmark runs against a simulated server whose engine is never the limit: a step takes 2 ms whatever is in
it. So what is late, or missing from the rate, or longer than the server's own time to first token, is the client's or
the machine's. The server takes CPU as well, as a rehearsal on one machine does; in front of real engines AIPerf has the
cores to itself, so these ceilings are low rather than high.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import requests
import yaml

from benchmarks.errors import BenchmarkError
from benchmarks.load import aiperf_version, find_aiperf
from benchmarks.metrics import parse
from benchmarks.records import RECORDS_FILE
from benchmarks.scenario_files import find_scenario
from benchmarks.target import Target
from tools import foreground
from tools.simulated_server.process import in_own_process
from tools.study import client_ceiling_page
from tools.toolchain import environments
from tools.toolchain.versions import ROOT

DATA = ROOT / "docs" / "explanation" / "data" / "client-ceiling.json"
PAGE = ROOT / "docs" / "explanation" / "client-ceiling.md"
RECORDS = f"*/*/rates/*/aiperf/{RECORDS_FILE}"
OUTPUT = "output"

# The simulated tokenizer has one byte a token. English has about four, and what a client must carry are the bytes.
BYTES_PER_TOKEN = 4
ENGINE = "base=0.002,per_sequence=0,per_prompt_token=0,noise=0,token_budget=1000000000,max_sequences=1000000"
SERVER = ["--kind", "aggregated", "--decode", "1", "--speed", ENGINE, "--cache-tokens", "0"]
WARMUP_S, WINDOW_S, FEWEST = 2.0, 6.0, 30
# A client keeps up with a rate when its p90 lateness is below the first, and what it sends above the second share of
# the rate, less three standard errors of as many Poisson arrivals.
LATE_MS, SENT = 10.0, 0.95


@dataclass(frozen=True)
class Shape:
    """A load in tokens, and the rates to try."""

    isl: int
    osl: int
    rates: tuple[float, ...]


SHAPES = (
    Shape(256, 16, (16, 64, 160)),
    Shape(8192, 16, (8, 24, 40)),
    Shape(8192, 256, (4, 10, 20)),
)


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


def measure(target: Target, shape: Shape, rate: float, aiperf: str) -> Row:
    """Run the benchmark at one rate. Raises BenchmarkError when it leaves no records."""
    before = _spent(target)
    seen_before = len(_served(target))
    with tempfile.TemporaryDirectory(prefix="client-ceiling-") as scratch:
        folder = Path(scratch)
        (folder / "target.json").write_text(target.model_dump_json(), encoding="utf-8")
        (folder / "scenarios.yaml").write_text(yaml.safe_dump(_scenario(shape, rate)), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks", "run", str(folder / "target.json"), "--aiperf", aiperf]
        command += ["--scenarios", str(folder / "scenarios.yaml"), "--scenario", "ceiling", "--results", scratch]
        command += ["--rates", f"{rate:g}"]
        progress = watch(command, folder)
        records = [*folder.glob(RECORDS)]
        if not records:
            raise BenchmarkError(
                f"no records of {rate:g} req/s: {(folder / OUTPUT).read_text(encoding='utf-8').strip()}"
            )
        sent = [json.loads(line) for line in records[0].read_text(encoding="utf-8").splitlines()]
    return summarize(rate, sent, _served(target)[seen_before:], cost(progress), _spent(target).others_since(before))


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


def rows(target: Target, shape: Shape, aiperf: str) -> Iterator[Row]:
    """Every rate; then the highest that the client kept up with, once more."""
    highest = None
    for rate in shape.rates:
        row = measure(target, shape, rate, aiperf)
        yield row
        highest = rate if row.keeps_up else highest
    if highest is not None:
        yield measure(target, shape, highest, aiperf)


def study(aiperf: str) -> None:
    """All shapes. What has been measured is kept after each rate, so that an end in the middle loses little."""
    began = time.monotonic()
    data: dict[str, Any] = {"conditions": _conditions(aiperf), "shapes": []}
    for shape in SHAPES:
        found: list[dict[str, Any]] = []
        data["shapes"].append({"isl": shape.isl, "osl": shape.osl, "rows": found})
        with in_own_process([*SERVER, "--bytes-per-token", str(BYTES_PER_TOKEN)]) as target:
            # Nothing is proven from counters here, so nobody waits until they stand still.
            for row in rows(target.model_copy(update={"metrics_urls": []}), shape, aiperf):
                print(f"{shape.isl}/{shape.osl}: {row}", file=sys.stderr, flush=True)
                found.append(asdict(row) | {"keeps_up": row.keeps_up})
                data["conditions"]["minutes"] = round((time.monotonic() - began) / 60, 1)
                _keep(data)


def _keep(data: dict[str, Any]) -> None:
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(client_ceiling_page.write(data), encoding="utf-8")


def _scenario(shape: Shape, rate: float) -> dict[str, Any]:
    """The rehearsal's with other numbers, as a scenarios file has it."""
    data = find_scenario("rehearsal").model_dump(mode="json", exclude={"name"}, exclude_defaults=True)
    wanted = {
        "isl": shape.isl * BYTES_PER_TOKEN,
        "osl": shape.osl,
        "rates": [rate],
        "warmup_s": WARMUP_S,
        "window_s": WINDOW_S,
        "min_requests": FEWEST,
        "request_timeout_s": 60,
    }
    return {"ceiling": data | {key: value for key, value in wanted.items() if key in data}}


def _served(target: Target) -> list[dict[str, Any]]:
    text = requests.get(f"{target.url}/simulated/requests", timeout=30).text
    return [json.loads(line) for line in text.splitlines()]


def _spent(target: Target) -> Spent:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)  # those that have ended, and theirs
    text = requests.get(f"{target.url}/metrics", timeout=30).text
    server = parse(text).total("simulated_cpu_seconds_total") or 0.0
    machine = psutil.cpu_times()
    busy = sum(machine) - machine.idle - machine.iowait
    return Spent(time.monotonic(), children.ru_utime + children.ru_stime, server, busy)


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else 0.0


def _conditions(aiperf: str) -> dict[str, Any]:
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "aiperf": ".".join(aiperf_version(aiperf).split(".")[:2]),
        "bytes_per_token": BYTES_PER_TOKEN,
        "late_ms": LATE_MS,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> int:
    """Measure, keep the data, write the page."""
    foreground.interruptible()
    try:
        named = os.environ.get("PD_MI325X_AIPERF") or str(environments.directory("benchmark") / "bin" / "aiperf")
        study(find_aiperf(named))
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
