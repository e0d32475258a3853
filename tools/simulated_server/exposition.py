"""The counters as Ray's metrics agents export those of real engines, in Prometheus' text format.

Names and labels as recorded from Ray 2.55 and vLLM 0.18 (tests/unit/benchmarks/recorded). As there, a counter is shown
after its first increment. What is called `simulated_…` is about this program itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from tools.simulated_server.clock import LATE_BUCKETS, Lateness
from tools.simulated_server.replica import Replica
from tools.simulated_server.settings import Settings

# Counter of vLLM -> field of Counted.
_VLLM = {
    "ray_vllm_prompt_tokens_total": "prompt_tokens",
    "ray_vllm_prompt_tokens_cached_total": "cached_tokens",
    "ray_vllm_prefix_cache_queries_total": "prefix_queries",
    "ray_vllm_prefix_cache_hits_total": "prefix_hits",
    "ray_vllm_external_prefix_cache_queries_total": "external_queries",
    "ray_vllm_external_prefix_cache_hits_total": "external_hits",
    "ray_vllm_generation_tokens_total": "generation_tokens",
    "ray_vllm_request_success_total": "requests",
    "ray_vllm_nixl_num_failed_transfers_total": "failed_transfers",
    "ray_vllm_nixl_num_kv_expired_reqs_total": "expired",
}
# Counter of this repository's callback -> field.
_OURS = {
    "ray_pd_kv_bytes_transferred_total": "kv_bytes",
    "ray_pd_kv_transfers_total": "kv_transfers",
    "ray_pd_kv_descriptors_total": "kv_descriptors",
    "ray_pd_kv_post_seconds_total": "kv_post_seconds",
    "ray_pd_kv_transfer_seconds_total": "kv_transfer_seconds",
}
# The count of vLLM's histogram of KV bytes; Ray's text gives it no type of its own.
_TRANSFERS = "ray_vllm_nixl_bytes_transferred_count"


def metrics(settings: Settings, replicas: Sequence[Replica], lateness: Lateness) -> str:
    """All of one scrape."""
    lines = ["# HELP up always there", "# TYPE up gauge", "up 1"]
    for name, field in (_VLLM | _OURS).items():
        samples = list(_samples(settings, replicas, name, field))
        if samples:
            lines += [f"# TYPE {name} counter", *samples]
    lines += _samples(settings, replicas, _TRANSFERS, "kv_transfers")
    return "\n".join([*lines, *_itself(lateness)]) + "\n"


def nics(settings: Settings, replicas: Sequence[Replica]) -> str:
    """What a node-exporter would show: one RDMA device that carried all KV, unless that goes over TCP."""
    tcp = settings.misbehaviour.kv_over_tcp or settings.platform == "cpu"
    moved = sum(replica.counted.kv_bytes for replica in replicas)
    rdma = 0 if tcp else moved
    lines: list[str] = []
    for name in ("received", "transmitted"):
        full = f"node_infiniband_port_data_{name}_bytes_total"
        lines += [f"# TYPE {full} counter", f'{full}{{device="fabric0",port="1"}} {rdma}']
    full = "node_network_receive_bytes_total"
    lines += [f"# TYPE {full} counter", f'{full}{{device="eth0"}} {moved - rdma}']
    return "\n".join(lines) + "\n"


def _samples(settings: Settings, replicas: Sequence[Replica], name: str, field: str) -> Iterator[str]:
    for replica in replicas:
        value = getattr(replica.counted, field)
        if value:
            value = value / settings.time_scale if field.endswith("_seconds") else value
            labels = _labels(settings, replica, ours=name in _OURS)
            text = ",".join(f'{key}="{label}"' for key, label in labels.items())
            yield f"{name}{{{text}}} {float(value)}"


def _labels(settings: Settings, replica: Replica, ours: bool) -> dict[str, str]:
    if ours:
        deployment = f"{replica.role.capitalize()}:{settings.model}"
        own = {"deployment": deployment, "replica": replica.name, "transports": settings.transports}
    else:
        own = {"ReplicaId": replica.name, "engine": "0", "model_name": settings.model}
    return {"NodeAddress": replica.node, **own}


def _itself(lateness: Lateness) -> list[str]:
    name = "simulated_timer_late_seconds"
    lines = [f"# HELP {name} how late this program's own timers came", f"# TYPE {name} histogram"]
    below = 0
    for bound, count in zip([*LATE_BUCKETS, float("inf")], lateness.counts, strict=True):
        below += count
        label = "+Inf" if bound == float("inf") else f"{bound:g}"
        lines.append(f'{name}_bucket{{le="{label}"}} {below}')
    cpu = "simulated_cpu_seconds_total"
    used = [f"# HELP {cpu} CPU seconds of this program", f"# TYPE {cpu} counter", f"{cpu} {time.process_time()}"]
    return [*lines, f"{name}_sum {lateness.total}", f"{name}_count {below}", *used]
