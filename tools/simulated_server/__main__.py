"""`python -m tools.simulated_server`: serve made-up answers with modelled latencies, print the target to measure."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import one_line_endings
from benchmarks.errors import BenchmarkError
from tools.simulated_server.misbehaviour import parse
from tools.simulated_server.model import Arrangement
from tools.simulated_server.running import Running, serve
from tools.simulated_server.settings import Settings, parse_speed

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Kind(StrEnum):
    """How replicas are arranged."""

    AGGREGATED = "aggregated"
    PD = "pd"


class OnPlatform(StrEnum):
    """What the target says it runs on."""

    CPU = "cpu"
    ROCM = "rocm"
    CUDA = "cuda"


@app.command(help=__doc__)
def main(
    kind: Annotated[Kind, typer.Option(help="Replicas of one kind, or prefill apart from decode.")] = Kind.PD,
    prefill: Annotated[int, typer.Option(min=1, help="Prefill replicas; pd only.")] = 1,
    decode: Annotated[int, typer.Option(min=1, help="Decode replicas, or aggregated ones.")] = 1,
    port: Annotated[int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0: a free one.")] = 0,
    speed: Annotated[
        str, typer.Option(help="gpu, quick, or base=0.01,per_prompt_token=0.00002,…: see model.py.")
    ] = "gpu",
    transfer_latency: Annotated[float, typer.Option(min=0, help="Seconds of each KV transfer; pd only.")] = 0.002,
    transfer_per_token: Annotated[float, typer.Option(min=0, help="Seconds of a prompt token's KV besides.")] = 4e-6,
    block_size: Annotated[int, typer.Option(min=1, help="Tokens of a KV block.")] = 128,
    cache_tokens: Annotated[int, typer.Option(min=0, help="Of each replica's prefix cache; 0: none.")] = 1_000_000,
    bytes_per_token: Annotated[int, typer.Option(min=1, help="Of a prompt. 1 fits the target's tokenizer.")] = 1,
    seed: Annotated[int, typer.Option(help="Of everything random here.")] = 0,
    time_scale: Annotated[float, typer.Option(min=0.01, help="Latencies are divided by it.")] = 1.0,
    platform: Annotated[OnPlatform, typer.Option(help="What the target says it runs on.")] = OnPlatform.CPU,
    scenario: Annotated[str, typer.Option(help="The target's.")] = "rehearsal",
    misbehave: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE; again for more. See the documentation.")
    ] = None,
    target_file: Annotated[Path | None, typer.Option(help="Where to write the target besides.")] = None,
) -> None:
    """Serve until Ctrl-C."""
    if kind is not Kind.PD and prefill != 1:
        raise BenchmarkError(f"--prefill {prefill}: replicas of --kind aggregated are --decode")
    arrangement = Arrangement(
        parse_speed(speed),
        decode=decode,
        prefill=prefill if kind is Kind.PD else 0,
        transfer_seconds=transfer_per_token,
        transfer_latency=transfer_latency,
        block_size=block_size,
        cache_tokens=cache_tokens,
    )
    settings = Settings(
        arrangement,
        seed=seed,
        time_scale=time_scale,
        bytes_per_token=bytes_per_token,
        platform=platform.value,
        scenario=scenario,
        misbehaviour=parse(misbehave or []),
    )

    def started(running: Running) -> None:
        text = running.target.model_dump_json(indent=2)
        if target_file:
            _keep(text, target_file)
        print(text, flush=True)
        print(f"simulated, no model: {running.target.stack} at {running.url}; Ctrl-C ends it", file=sys.stderr)

    try:
        asyncio.run(_until_told(settings, port, started))
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # asyncio's own text names the address twice
        raise BenchmarkError(f"cannot serve on port {port}: {reason}; choose another with --port") from None


def _keep(target: str, file: Path) -> None:
    try:
        file.write_text(target + "\n", encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(f"cannot write {file}: {error.strerror}; choose another with --target-file") from None


async def _until_told(settings: Settings, port: int, started: Callable[[Running], None]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(settings, port, started, stop)


if __name__ == "__main__":
    with one_line_endings(BenchmarkError):
        app()
