"""Which stacks have their nodes inspected and their RDMA proven, and settings that could not work."""

from typing import Any

import pytest
from rendered_services import of_profile, stack

from serving.errors import ConfigError
from serving.fabric.discovered import Discovered
from serving.fabric_plan import fabric_plan

MULTUS = {"network": "multus", "hostDevices": {"fabric0": "fabric0"}}
NAMED = {"environment": {"UCX_NET_DEVICES": "mlx5_0:1,mlx5_2:1"}}


def doks(**nodes: Any) -> dict[str, Any]:
    return {"provider": "doks", "nodes": nodes}


def test_prefill_and_decode_on_rdma_nodes_have_both() -> None:
    plan = fabric_plan(stack())
    assert (plan.gate, plan.inspect, plan.memory, plan.devices) == ("required", True, "rocm", ())
    assert plan.runs_gate
    assert fabric_plan(stack(fabric={"gate": "warn"})).runs_gate


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (stack(topology="agg-2"), "topology agg-2: no KV is moved"),
        (of_profile("kind"), "platform cpu has no RDMA gate"),
        (stack(platform="cuda", cluster=doks(gpuResource="nvidia.com/gpu")), "platform cuda has no RDMA gate"),
        (stack(cluster=doks(rdmaResources={})), "no RDMA resources (cluster.nodes.rdmaResources)"),
    ],
)
def test_where_there_is_nothing_to_prove(settings: Any, reason: str) -> None:
    plan = fabric_plan(settings)
    assert (plan.gate, plan.inspect, plan.runs_gate) == ("none", False, False)
    assert reason in plan.reason


def test_off_still_discovers() -> None:
    for off in ("off", False):  # YAML reads the word as false
        plan = fabric_plan(stack(fabric={"gate": off}))
        assert (plan.gate, plan.inspect, plan.runs_gate, plan.reason) == ("off", True, False, "fabric.gate is off")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cluster": doks(**MULTUS)}, ["fabric.gate: ", "network multus hides the NICs", "UCX_NET_DEVICES"]),
        ({"fabric": {"discover": False}}, ["fabric.gate: ", "discover is false", "fabric.gate: off"]),
        ({"fabric": {"discover": False}, "cluster": doks(**NAMED)}, ["fabric.floorGbps: is required"]),
        ({"cluster": doks(environment={"UCX_NET_DEVICES": "all"})}, ["UCX_NET_DEVICES: all names no port", "mlx5_0:1"]),
        ({"cluster": doks(environment={"UCX_NET_DEVICES": "mlx5_0,mlx5_1:1"})}, ["mlx5_0 names no port"]),
    ],
)
def test_a_gate_that_could_not_know_what_to_test_is_one_line(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        fabric_plan(stack(**settings))
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)


def test_named_nics_and_a_floor_do_without_discovery() -> None:
    plan = fabric_plan(stack(cluster=doks(**MULTUS, **NAMED), fabric={"floorGbps": 190}))
    assert (plan.gate, plan.inspect, plan.devices) == ("required", False, ("mlx5_0:1", "mlx5_2:1"))


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        ({"gate": "maybe"}, ["fabric.gate", "required"]),
        ({"floorGbps": 0}, ["fabric.floorGbps"]),
        ({"floor": 1}, ["fabric.floor", "unknown key", "gate, floorGbps, discover"]),
    ],
)
def test_settings_that_are_wrong(fabric: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        stack(fabric=fabric)
    assert all(word in str(caught.value) for word in words), caught.value


def test_what_nodes_told_lies_between_the_platform_and_what_is_given() -> None:
    told = Discovered({"UCX_NET_DEVICES": "mlx5_2:1", "UCX_IB_GID_INDEX": "3", "UCX_ROCM_COPY_DMABUF": "n"}, (991, 44))
    before = stack(cluster=doks(environment={"UCX_IB_GID_INDEX": 1}))
    settings = before.on_fabric(told)
    assert settings.environment["UCX_NET_DEVICES"] == "mlx5_2:1"
    assert settings.environment["UCX_IB_GID_INDEX"] == "1"
    assert settings.environment["UCX_ROCM_COPY_DMABUF"] == "n", "over the platform's"
    assert settings.supplemental_groups == (991, 44)
    assert stack(cluster=doks(renderGroup=7)).on_fabric(told).supplemental_groups == (7,)
    assert "UCX_NET_DEVICES" not in before.environment
    assert before.supplemental_groups == ()
