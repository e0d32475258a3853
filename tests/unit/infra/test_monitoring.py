"""What is made for Prometheus and Grafana, and whether a dashboard shows metrics that exist."""

import json
import re
from typing import Any

import pulumi
import pytest
import yaml
from registrations import NAMES, Registration, program_registers, stack

from benchmarks.evidence import BYTES, FAILURES, TRANSFERS
from infra.monitoring import monitoring
from serving.dashboards import FOLDER, dashboards

PANELS = [(name, panel) for name, text in dashboards().items() for panel in json.loads(text)["panels"]]


def series_of(expression: str) -> set[str]:
    """Names of the series in a PromQL expression. All of ours start with `ray_`, which Ray puts before each name."""
    return set(re.findall(r"\bray_[a-zA-Z0-9_]+", expression))


def known_series() -> set[str]:
    """Series of the metrics in metrics.yaml; Prometheus makes three of a histogram."""
    groups = yaml.safe_load((FOLDER / "metrics.yaml").read_text())
    metrics = {name: kind for group in groups if group["source"] for name, kind in group["metrics"].items()}
    endings = {"histogram": ("_bucket", "_count", "_sum")}
    return {name + ending for name, kind in metrics.items() for ending in endings.get(kind, ("",))}


def made(mode: str) -> list[Registration]:
    return program_registers(lambda: monitoring(stack(monitoring=mode), *NAMES, pulumi.ResourceOptions()))


@pytest.mark.parametrize("mode", ["none", "annotations"])
def test_only_the_prometheus_operator_gets_objects(mode: str) -> None:
    assert made(mode) == []


def test_the_pod_monitor_selects_this_stacks_ray_pods() -> None:
    (monitor,) = (seen for seen in made("prometheus-operator") if seen.kind == "PodMonitor")
    assert monitor.type == "kubernetes:monitoring.coreos.com/v1:PodMonitor"
    assert monitor.inputs["metadata"]["namespace"] == NAMES[1]
    selected = monitor.inputs["spec"]["selector"]["matchLabels"]
    assert selected == {"app.kubernetes.io/instance": NAMES[0], "ray.io/is-ray-node": "yes"}
    assert monitor.inputs["spec"]["podMetricsEndpoints"] == [{"port": "metrics", "interval": "10s"}]


def test_grafana_finds_each_dashboard_by_its_label() -> None:
    found = [seen for seen in made("prometheus-operator") if seen.kind == "ConfigMap"]
    assert len(found) == len(dashboards()) >= 1
    for seen in found:
        assert seen.inputs["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((file, text),) = seen.inputs["data"].items()
        assert file.endswith(".json")
        assert json.loads(text)["title"]


@pytest.mark.parametrize(("name", "panel"), PANELS, ids=[f"{name}: {panel['title']}" for name, panel in PANELS])
def test_a_panel_shows_what_a_stack_exports_in_the_chosen_namespace(name: str, panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        named = series_of(target["expr"])
        assert named
        assert named <= known_series()
        # A selector without the namespace would add up the stacks of a cluster.
        assert target["expr"].count("{") == target["expr"].count('{namespace="$namespace"')


def test_no_panel_shows_a_sum_that_ray_rebuilds() -> None:
    """Ray makes a histogram's `_sum` from bucket midpoints (facts: serving/replica/kv_counters.py)."""
    shown = {name for _, panel in PANELS for target in panel["targets"] for name in series_of(target["expr"])}
    assert not {name for name in shown if name.endswith("_sum")}
    assert {BYTES, TRANSFERS, *FAILURES.values()} <= shown


def test_an_unknown_metric_would_be_noticed() -> None:
    assert series_of("sum(rate(ray_vllm_no_such_thing_total[1m]))") == {"ray_vllm_no_such_thing_total"}
    assert "ray_vllm_no_such_thing_total" not in known_series()


def test_panels_do_not_lie_on_each_other() -> None:
    for name in dashboards():
        grid = [panel["gridPos"] for file, panel in PANELS if file == name]
        cells = [(x, y) for g in grid for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24
