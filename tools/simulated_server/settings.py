"""Everything that a simulated server is told."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

from benchmarks.errors import BenchmarkError
from tools.simulated_server.misbehaviour import Misbehaviour
from tools.simulated_server.model import Arrangement, Speed

Platform = Literal["cpu", "rocm", "cuda"]

# `gpu` is shaped like two H200 that served 8,192 + 256 tokens (Ray 2.57, measured: TTFT p50 0.42 s and TPOT p50 10 ms
# aggregated at 1 req/s); it is no measurement of anything else. `quick` is for tests: no source.
SPEEDS = {
    "gpu": Speed(base=0.009, per_sequence=0.0001, per_prompt_token=0.00004, noise=0.03),
    "quick": Speed(base=0.004, per_sequence=0.0001, per_prompt_token=0.00001),
}


@dataclass(frozen=True)
class Settings:
    """time_scale: latencies are divided by it. bytes_per_token: of a prompt; 1 is exact with the tokenizer beside this.

    platform: what the target says of itself, which decides what a path of the KV is held to be.
    """

    arrangement: Arrangement
    seed: int = 0
    time_scale: float = 1.0
    bytes_per_token: int = 1
    platform: Platform = "cpu"
    model: str = "simulated-model"
    scenario: str = "rehearsal"
    misbehaviour: Misbehaviour = field(default_factory=Misbehaviour)

    @property
    def transports(self) -> str:
        """UCX_TLS of decode's engines, as serving/platforms.py has it."""
        if self.misbehaviour.kv_over_tcp:
            return "tcp,self"
        return "tcp,sm,self" if self.platform == "cpu" else "rc,sm,self"


def parse_speed(text: str) -> Speed:
    """A name of SPEEDS, or `base=0.01,noise=0,…`: what differs from `gpu`. Raises BenchmarkError."""
    if text in SPEEDS:
        return SPEEDS[text]
    known = {one.name: float(getattr(SPEEDS["gpu"], one.name)) for one in fields(Speed)}
    for setting in text.split(","):
        key, _, value = setting.partition("=")
        try:
            known[key] = {key: float(value)}[key] if key in known else known[key]
            if known[key] < 0:
                raise ValueError
        except (KeyError, ValueError):
            names = ", ".join([*SPEEDS, *known])
            raise BenchmarkError(f"--speed {setting}: give a name or KEY=NUMBER, of {names}") from None
    return Speed(
        known["base"],
        known["per_sequence"],
        known["per_prompt_token"],
        int(known["token_budget"]),
        int(known["max_sequences"]),
        known["noise"],
    )
