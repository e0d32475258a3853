"""What AIPerf can offer, and what it adds: `python -m tools.study.client_ceiling`, about ten minutes on 2 cores.

The whole benchmark runs against a simulated server whose engine is never the limit: a step takes 2 ms whatever is in
it. So what is late, or missing from the rate, or longer than the server's own time to first token, is the client's or
the machine's. The server takes CPU as well, as a rehearsal on one machine does; in front of real engines AIPerf has the
cores to itself, so these ceilings are low rather than high.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import requests
import yaml

from benchmarks.errors import BenchmarkError
from benchmarks.load import aiperf_version, find_aiperf
from benchmarks.scenario_files import find_scenario
from benchmarks.target import Target
from tools import foreground
from tools.simulated_server.process import in_own_process
from tools.study import client_ceiling_page
from tools.study.client_ceiling_row import LATE_MS, OUTPUT, RECORDS, WARMUP_S, Row, cost, spent, summarize, watch
from tools.toolchain import environments
from tools.toolchain.versions import ROOT

DATA = ROOT / "docs" / "explanation" / "data" / "client-ceiling.json"
PAGE = ROOT / "docs" / "explanation" / "client-ceiling.md"

# The simulated tokenizer has one byte a token. English has about four, and what a client must carry are the bytes.
BYTES_PER_TOKEN = 4
ENGINE = "base=0.002,per_sequence=0,per_prompt_token=0,noise=0,token_budget=1000000000,max_sequences=1000000"
SERVER = ["--kind", "aggregated", "--decode", "1", "--speed", ENGINE, "--cache-tokens", "0"]
WINDOW_S, FEWEST = 6.0, 30


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


def measure(target: Target, shape: Shape, rate: float, aiperf: str) -> Row:
    """Run the benchmark at one rate. Raises BenchmarkError when it leaves no records."""
    before = spent(target)
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
    return summarize(rate, sent, _served(target)[seen_before:], cost(progress), spent(target).others_since(before))


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
