"""A simulated server as a target of the benchmark: labelled as what it is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.target import Deployment, KvShape, Target
from tools.simulated_server.settings import Settings

# A token is a byte: byte-level BPE without merges. A client that counts tokens with it counts what the server counts.
TOKENIZER = Path(__file__).with_name("tokenizer")
VERSION = "1"


def describe(settings: Settings, url: str) -> Target:
    """The `benchmark` output of a stack that would be this server at `url`."""
    arrangement = settings.arrangement
    pd = arrangement.disaggregated
    topology = f"{arrangement.prefill}p{arrangement.decode}d" if pd else f"agg-{arrangement.decode}"
    engine: dict[str, Any] = {
        "block_size": arrangement.block_size,
        "max_num_batched_tokens": arrangement.speed.token_budget,
        "max_num_seqs": arrangement.speed.max_sequences,
        "enable_prefix_caching": arrangement.cache_tokens > 0,
        "simulated": asdict(arrangement) | {"seed": settings.seed, "time_scale": settings.time_scale},
    }
    return Target(
        stack=f"simulated-pd-{topology}" if pd else f"simulated-{topology}",
        url=url,
        model=settings.model,
        tokenizer=str(TOKENIZER),
        scenario=settings.scenario,
        metrics_urls=[f"{url}/metrics"],
        node_exporter_urls=[] if settings.platform == "cpu" else [f"{url}/nics"],
        deployment=Deployment(
            kind="pd" if pd else "aggregated",
            topology=topology,
            platform=settings.platform,
            prefill=arrangement.prefill,
            decode=arrangement.decode if pd else 0,
            aggregated=0 if pd else arrangement.decode,
            gpus=0,
            dummy_weights=True,
            engine={"prefill": engine, "decode": engine} if pd else {"aggregated": engine},
        ),
        kv=KvShape(block_size=arrangement.block_size, bytes_per_token=arrangement.kv_bytes) if pd else None,
        versions={"simulated-server": VERSION},
        commit="",
    )
