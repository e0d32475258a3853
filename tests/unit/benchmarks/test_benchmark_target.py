"""The `benchmark` output of a stack: what fits, and what is said when it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in_data import aggregated, target_data

from benchmarks.errors import BenchmarkError
from benchmarks.target import parse_target, read_target

URL = "http://127.0.0.1:18000"
SERVICE = "http://llm-metrics.llm.svc:8080/metrics"


def test_both_kinds_are_read(tmp_path: Path) -> None:
    behind_a_service = target_data(
        URL,
        metrics_urls=[],
        metrics_service=SERVICE,
        node_exporter_service="http://node-exporter.monitoring.svc:9100/metrics",
        fabric={"gate": "warned", "reason": "4 of 8 NICs"},
    )
    for name, data in (
        ("pd", target_data(URL)),
        ("agg", aggregated(URL, metrics_urls=[])),
        ("pd-service", behind_a_service),
    ):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(data), encoding="utf-8")
        assert read_target(str(file)).url == URL


@pytest.mark.parametrize("gate", ["passed", "warned", "off", "none"])
def test_how_far_rdma_is_proven_comes_with_it(gate: str) -> None:
    """Not with a target that an earlier version of this project wrote."""
    fabric = {"gate": gate, "reason": "why"}
    target = parse_target(json.dumps(target_data(URL) | {"fabric": fabric}), "here")
    assert target.fabric is not None
    assert target.fabric.model_dump() == fabric
    assert parse_target(json.dumps(target_data(URL)), "here").fabric is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fabric": {"gate": "maybe", "reason": ""}}, "fabric.gate: "),
        ({"colour": "red"}, "colour: unknown key"),
        ({"url": "127.0.0.1:18000"}, "url: "),
        ({"stack": "../elsewhere"}, "stack: "),
        ({"kv": None}, "a pd deployment needs `kv` and `metrics_urls`"),
        ({"metrics_urls": []}, "a pd deployment needs `kv` and `metrics_urls` or `metrics_service`"),
        ({"metrics_service": SERVICE}, "exclude each other"),
        ({"metrics_urls": [], "metrics_service": "https://llm-metrics.llm.svc:8080/metrics"}, "metrics_service: "),
        ({"metrics_urls": [], "metrics_service": "llm-metrics.llm.svc:8080"}, "metrics_service: "),
        ({"metrics_urls": [f"{URL}/metrics"] * 2}, "an endpoint named twice"),
        ({"node_exporter_urls": ["http://10.0.0.1:9100/metrics"] * 2}, "node_exporter_urls: an endpoint named twice"),
        (
            {"node_exporter_urls": ["http://10.0.0.1:9100/metrics"], "node_exporter_service": SERVICE},
            "`node_exporter_urls` and `node_exporter_service` exclude each other",
        ),
        ({"node_exporter_service": "https://nodes.llm.svc:9100/metrics"}, "node_exporter_service: "),
        ({"fabric": {"gate": "fine"}}, "fabric.gate: "),
        ({"url": "http://127.0.0.1:99999"}, "url: 'http://127.0.0.1:99999' is no http URL"),
        ({"url": "http://[::1"}, "url: "),
        ({"metrics_urls": ["http://a:99999/metrics"]}, "metrics_urls: "),
        ({"metrics_urls": [], "metrics_service": "http://a:99999/"}, "metrics_service: "),
        ({"stack": "a" * 300}, "stack: "),
        ({"kv": {"block_size": 0, "bytes_per_token": 1}}, "kv.block_size: "),
    ],
)
def test_what_does_not_fit_is_one_line(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BenchmarkError) as caught:
        parse_target(json.dumps(target_data(URL) | change), "target.json")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("target target.json")


@pytest.mark.parametrize("value", ["x", "128", -5, 0, 0.5, [], True, float("inf"), 10**9])
@pytest.mark.parametrize("name", ["block_size", "tensor_parallel_size"])
def test_sizes_of_engines_are_sizes(name: str, value: object) -> None:
    data = aggregated(URL, metrics_urls=[])
    data["deployment"]["engine"] = {"aggregated": {name: value}}
    with pytest.raises(BenchmarkError, match=f"{name}|Infinity is no number"):
        parse_target(json.dumps(data), "here")


@pytest.mark.parametrize("text", ["9" * 5000, "[" * 100_000, '{"stack": "a", "stack": "b"}', '{"a": NaN}', "null"])
def test_what_is_no_target_is_one_line(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"^target here[^\n]*$"):
        parse_target(text, "here")


def test_unreadable_files_are_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="is not JSON"):
        read_target(str(broken))
    with pytest.raises(BenchmarkError, match="No such file"):
        read_target(str(tmp_path / "missing.json"))
    with pytest.raises(BenchmarkError, match="cannot read target"):
        read_target("a\0")
