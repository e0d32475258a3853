"""The stack output `benchmark`: all that a benchmark has to know about a deployment, and not how it came to be."""

import subprocess
from pathlib import Path
from typing import Any

import pulumi

from serving.fabric_plan import fabric_plan
from serving.kv_bytes import kv_bytes_per_token
from serving.serve_config import role_arguments
from serving.stack import Stack
from serving.versions import platform_versions
from serving.weights import tokenizer_source


def benchmark_target(
    stack: Stack,
    service_url: pulumi.Input[str],
    metrics_urls: pulumi.Input[list[str]] | None = None,
    metrics_service: str | None = None,
    fabric: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The document that `python -m benchmarks run` takes (schema: benchmarks/target.py).

    fabric: how far RDMA is proven (infra/rdma_gate.py); by default not at all, as on a Ray cluster.
    One of `metrics_urls` and `metrics_service`: the endpoints by name, or a name that resolves to all of them.
    """
    topology, platform, model = stack.topology_, stack.platform_, stack.model_
    engine = {role: role_arguments(stack, role) for role in topology.roles}
    kv = None
    if topology.disaggregated:
        decode = engine["decode"]
        dtype = "fp8" if decode["kv_cache_dtype"].startswith("fp8") else "bfloat16"
        kv = {
            "block_size": decode["block_size"],
            "bytes_per_token": kv_bytes_per_token(model, dtype, decode["tensor_parallel_size"]),
        }
    return {
        "stack": pulumi.get_stack(),
        "url": service_url,
        "model": model.name,
        "tokenizer": tokenizer_source(stack) if stack.target == "kubernetes" else stack.model_source,
        "scenario": stack.scenario,
        "metrics_urls": metrics_urls if metrics_urls is not None else [],
        "metrics_service": metrics_service,
        "deployment": {
            "kind": "pd" if topology.disaggregated else "aggregated",
            "topology": str(topology),
            "platform": platform.name,
            "prefill": topology.prefill,
            "decode": topology.decode,
            "aggregated": topology.aggregated,
            "gpus": stack.gpus,
            "dummy_weights": any(arguments.get("load_format") == "dummy" for arguments in engine.values()),
            "engine": engine,
        },
        "kv": kv,
        "fabric": fabric or {"gate": "none", "reason": fabric_plan(stack).reason},
        "versions": platform_versions(platform.name),
        "commit": _commit(),
    }


def _commit() -> str:
    """The checkout's commit, with `-dirty` behind it when files differ from it; nothing when it is no git checkout."""
    root = Path(__file__).resolve().parent.parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return ""  # unpacked inside another repository
        return git("rev-parse", "HEAD") + ("-dirty" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""
