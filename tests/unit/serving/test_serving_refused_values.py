"""Values that Kubernetes would take and no stack of ours works with: none of a resource, a namespace of the cluster."""

from typing import Any

import pytest
from serving_command import QWEN

from serving.errors import ConfigError
from serving.stack import Stack, parse_settings, parse_stack


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"cluster": {"provider": "doks", "nodes": {"headCpu": "0"}}}, "cluster.nodes.headCpu"),
        ({"cluster": {"provider": "doks", "nodes": {"engineMemory": "0.0Gi"}}}, "cluster.nodes.engineMemory"),
        ({"cluster": {"provider": "doks", "nodes": {"engineCpu": "0m"}}}, "cluster.nodes.engineCpu"),
        ({"results": {"size": "0"}}, "results.size"),
    ],
)
def test_none_of_something(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match="more than 0") as refusal:
        parse_stack(QWEN | settings)
    assert refusal.value.key == key


@pytest.mark.parametrize("value", ["1", "10", "0.5", "100m", "1m"])
def test_little_of_something(value: str) -> None:
    cluster = {"provider": "doks", "nodes": {"headCpu": value}}
    assert parse_stack(QWEN | {"cluster": cluster}).profile.head_cpu == value


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
def test_an_operator_beside_the_clusters_own(namespace: str) -> None:
    """The stack would make the namespace, and delete it with all that is in it."""
    operator = {"rayOperator": {"namespace": namespace}}
    pool = {"nodePool": {"nodes": 2}, "cluster": {"provider": "doks"}}
    for values in (QWEN, pool):
        with pytest.raises(ConfigError, match="the cluster's own") as refusal:
            parse_settings(values | operator)
        assert refusal.value.key == "rayOperator.namespace"
    with pytest.raises(ConfigError, match="has to be a Kubernetes name"):
        parse_stack(QWEN | {"rayOperator": {"namespace": "Kuberay_1"}})


def test_whose_operator_it_is() -> None:
    def installs(**settings: Any) -> bool:
        stack = parse_settings(QWEN | settings)
        assert isinstance(stack, Stack)
        return stack.installs_operator

    assert installs()
    assert not installs(rayOperator={"install": "preinstalled"})
    assert not installs(cluster={"provider": "stack", "stack": "mi325x-4node"})
