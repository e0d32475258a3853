"""Does in one process, under a real Ray, what replicas do as they start: `python replica_process.py CASES RESULTS`.

CASES (JSON) is {name: stack settings}. Each replica of each is given its place by Serve's own replica context and runs
the callback as Ray's engine does; then the process receives transfer statistics of vLLM. RESULTS: "replicas", the
environment of each engine in the order they started, and "metrics", what Ray's Prometheus endpoint then says.
"""

import asyncio
import json
import os
import socket
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from own_ray import own_ray
from prometheus_client.parser import text_string_to_metric_families
from ray.serve._private.common import DeploymentID, ReplicaID
from ray.serve._private.config import DeploymentConfig
from ray.serve.context import _set_internal_replica_context
from ray.serve.llm import LLMConfig
from ray.serve.schema import ReplicaRank
from vllm.config import KVTransferConfig, VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1.nixl_connector import NixlKVConnectorStats, NixlPromMetrics
from vllm.v1.metrics.ray_wrappers import RayKVConnectorPrometheus

from serving.replica import stack_info
from serving.serve_config import deployment_name, llm_config
from serving.stack import Stack, parse_stack
from serving.topology import Role

# Bytes and descriptors of eight reads, as measured for prompts of 1 to 700 tokens; the times are made up.
BYTES = [131072] * 4 + [262144] * 2 + [393216, 786432]
DESCRIPTORS = [8] * 4 + [16] * 2 + [24, 48]
SECONDS = [0.25] * 8
IMAGE = {"vllm": "0.18+rocm700", "ucx_commit": "da3fac2"}
METRICS_WAIT_S = 90  # Ray's agent starts in seconds; a busy machine may take longer


def start_replica(stack: Stack, role: Role, rank: int) -> dict[str, Any]:
    """Run the callback as vllm_engine.py does; what the engine of this replica then finds in its environment."""
    config = LLMConfig(**llm_config(stack, role))
    deployment = deployment_name(role, stack.model)
    _set_internal_replica_context(
        replica_id=ReplicaID(unique_id=f"{role}-{rank}", deployment_id=DeploymentID(deployment, "llm")),
        servable_object=None,
        _deployment_config=DeploymentConfig(),
        rank=ReplicaRank(rank=rank, node_rank=0, local_rank=rank),
        world_size=stack.topology_.roles[role],
    )
    process_environment = dict(os.environ)
    callback = config.get_or_create_callback()
    asyncio.run(callback.run_callback("on_before_node_init"))
    variables = callback.ctx.runtime_env["env_vars"]
    changed = {key: value for key, value in os.environ.items() if process_environment.get(key) != value}
    os.environ.clear()  # each replica is a process of its own and finds nothing of the one before
    os.environ.update(process_environment)
    return {
        "role": role,
        "rank": rank,
        "devices": config.get_engine_config().num_devices,
        "environment": variables,
        "process_environment": changed,
        "counting": getattr(NixlPromMetrics, "counted_by_pd_mi325x", False),
    }


def report_transfers(transfer_config: dict[str, Any]) -> None:
    """Two rounds of statistics, and an empty one, through the classes that a Ray replica logs metrics with."""
    exporter = RayKVConnectorPrometheus(
        VllmConfig(kv_transfer_config=KVTransferConfig(**transfer_config)), ["engine"], {0: ["0"]}
    )
    half = len(BYTES) // 2
    for part in (slice(0, half), slice(half, None), slice(0, 0)):
        statistics = NixlKVConnectorStats()
        statistics.data["bytes_transferred"] += BYTES[part]
        statistics.data["num_descriptors"] += DESCRIPTORS[part]
        statistics.data["transfer_duration"] += SECONDS[part]
        statistics.data["post_duration"] += SECONDS[part]
        exporter.observe(statistics.data, 0)


def scraped(port: int, wanted: str) -> list[dict[str, Any]]:
    """Samples of our counters and vLLM's NIXL metrics once `wanted` is among them and they no longer change."""
    deadline = time.monotonic() + METRICS_WAIT_S
    samples: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        time.sleep(3)  # Ray exports once a second, and may have done so between two rounds of statistics
        earlier = samples
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            continue
        samples = [
            {"name": sample.name, "labels": sample.labels, "value": sample.value}
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name.startswith(("ray_pd_", "ray_vllm_nixl"))
        ]
        if samples == earlier and any(sample["name"] == wanted for sample in samples):
            break
    return samples


def main(cases: Path, results: Path) -> None:
    """Stacks without KV transfer come first: whether they count anything can be told only before others do."""
    stacks = {name: parse_stack(settings) for name, settings in json.loads(cases.read_text()).items()}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # No image here; in one, the callback finds this in /etc.
    stack_info.STACK_FILE = results.with_name("pd-stack.json")
    stack_info.STACK_FILE.write_text(json.dumps({"found": IMAGE}))
    with own_ray(metrics_port=port):
        replicas: dict[str, list[dict[str, Any]]] = {}
        for name, stack in sorted(stacks.items(), key=lambda item: item[1].topology_.disaggregated):
            roles = stack.topology_.roles
            replicas[name] = [start_replica(stack, role, rank) for role in roles for rank in range(roles[role])]
        disaggregated = next(stack for stack in stacks.values() if stack.topology_.disaggregated)
        report_transfers(llm_config(disaggregated, "decode")["engine_kwargs"]["kv_transfer_config"])
        metrics = scraped(port, "ray_pd_kv_transfers_total")
    facts = {"replicas": replicas, "metrics": metrics, "bytes": sum(BYTES), "descriptors": sum(DESCRIPTORS)}
    results.write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
