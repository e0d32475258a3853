"""Exact counters of what NIXL moved, exported through Ray's metrics.

vLLM exports NIXL transfers as histograms, and Ray's exporter rebuilds a histogram's sum from bucket midpoints (measured
18 % off on Ray 2.55, 100 % on 2.57 for other sizes), so `ray_vllm_nixl_bytes_transferred_sum` proves nothing. These
counters add up each transfer's own numbers. They live on the decode side, which reads. vLLM 0.18 drops the peer of a
transfer before its statistics leave the worker (`NixlKVConnectorStats.record_transfer`), so they cannot name it.
"""

from typing import Any

from ray.util.metrics import Counter

_TAGS = ("deployment", "replica", "transports")
# Key of vLLM's per-transfer statistics -> exported counter. Ray adds the prefix `ray_` and the suffix `_total`.
_COUNTERS = {
    "bytes_transferred": ("pd_kv_bytes_transferred", "KV bytes read by NIXL"),
    "num_descriptors": ("pd_kv_descriptors", "memory descriptors posted for KV reads"),
    "transfer_duration": ("pd_kv_transfer_seconds", "time KV reads took, summed over transfers"),
    "post_duration": ("pd_kv_post_seconds", "time posting KV reads took inside the decode step"),
}


def install(deployment: str, replica: str, transports: str) -> None:
    """Count every transfer this process reports from now on. Safe to call twice.

    `transports` is what the engine lets UCX use (UCX_TLS): the only thing that is known here of the path.
    """
    metrics = _nixl_prometheus_metrics()
    if getattr(metrics, "counted_by_pd_mi325x", False):
        return
    tags = {"deployment": deployment, "replica": replica, "transports": transports}
    counters = {key: _counter(name, text, tags) for key, (name, text) in _COUNTERS.items()}
    transfers = _counter("pd_kv_transfers", "KV reads finished", tags)
    observe = metrics.observe

    def observe_and_count(self: Any, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        for key, counter in counters.items():
            amount = sum(transfer_stats_data.get(key) or ())
            if amount:
                counter.inc(amount)
        finished = len(transfer_stats_data.get("bytes_transferred") or ())
        if finished:
            transfers.inc(finished)
        observe(self, transfer_stats_data, engine_idx)

    metrics.observe = observe_and_count
    metrics.counted_by_pd_mi325x = True


def _counter(name: str, description: str, tags: dict[str, str]) -> Counter:
    counter = Counter(name, description=description, tag_keys=_TAGS)
    counter.set_default_tags(tags)
    return counter


def _nixl_prometheus_metrics() -> Any:
    """vLLM's class that receives the statistics: moved into a package after 0.18."""
    try:
        from vllm.distributed.kv_transfer.kv_connector.v1.nixl.stats import NixlPromMetrics
    except ImportError:
        from vllm.distributed.kv_transfer.kv_connector.v1.nixl_connector import NixlPromMetrics
    return NixlPromMetrics
