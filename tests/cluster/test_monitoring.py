"""Monitoring objects in a real API server; PodMonitor's definition is a stand-in (stand_ins/monitoring.yaml)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.cluster.piece import STACK, Piece
from tests.cluster.stand_in_definitions import stand_in_definitions
from tools.rehearsal.cluster import SimulatedCluster

GROUP = ("monitoring.coreos.com", "v1")


@pytest.fixture
def objects(api: client.ApiClient) -> Iterator[Any]:
    with stand_in_definitions(api, "monitoring"):
        yield client.CustomObjectsApi(api)


def test_objects_for_the_prometheus_operator_come_and_go(
    tmp_path: Path, cluster: SimulatedCluster, namespace: str, objects: Any, core: Any
) -> None:
    piece = Piece(tmp_path, cluster, namespace, "infra.monitoring:monitoring")

    def monitors() -> list[Any]:
        return objects.list_namespaced_custom_object(*GROUP, namespace, "podmonitors")["items"]

    def dashboards() -> list[str]:
        found = core.list_namespaced_config_map(namespace, label_selector="grafana_dashboard=1").items
        return [name for item in found for name in item.data]

    up = piece.up(monitoring="prometheus-operator")
    assert up.ok, up.text
    assert monitors()[0]["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] == STACK
    assert dashboards() == ["pd-overview.json"]
    assert piece.unchanged()

    assert piece.up(monitoring="annotations").ok
    assert monitors() == []
    assert dashboards() == []
    assert piece.pulumi("destroy --yes --skip-preview").ok
