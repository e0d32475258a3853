"""Which KubeRay does for a stack, and which operators stand in the way of one."""

import pytest
from preflight_facts import CHART, INPUTS, PINNED, Json, facts, operator

from infra.provider.preflight import kuberay

RAY = {"ray.io/v1": {"rayservices", "rayclusters", "rayjobs"}}


def schema(*fields: str) -> Json:
    spec: Json = {"properties": {"rayClusterConfig": {"properties": {}}}}
    for name in fields:
        where = spec
        *parents, last = name.split(".")
        for parent in parents:
            where = where["properties"][parent]
        where["properties"][last] = {"type": "object"}
    return {"components": {"schemas": {"io.ray.v1.RayService": {"properties": {"spec": spec}}}}}


FULL = schema("upgradeStrategy", "excludeHeadPodFromServeSvc", "rayClusterConfig.authOptions")


@pytest.mark.parametrize(
    "seen",
    [
        {"operators": [operator()]},
        {"operators": []},
        {"operators": None},
        {"operators": [operator("registry.example/kuberay@sha256:" + "0" * 64)]},
        {"operators": [operator(f"registry.example:5000/kuberay:{PINNED}")]},
        {"operators": [operator("x:v0.1", "a", "--watch-namespace", "a"), operator()]},
        {"operators": [operator(f"o:v{PINNED}", "a", "--watch-namespace=b,space")]},
        {"operators": [operator()], "ray_schema": None},
    ],
)
def test_a_kuberay_that_does(seen: Json) -> None:
    assert kuberay.lacks(INPUTS, facts(**{"served": RAY, "ray_schema": FULL, **seen})) == []


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"served": {}}, f"does not serve rayservices and rayclusters of ray.io/v1; install KubeRay {PINNED}"),
        ({"served": {"ray.io/v1": {"rayclusters"}}}, "does not serve rayservices"),
        (
            {"ray_schema": schema()},
            "not know upgradeStrategy, excludeHeadPodFromServeSvc, rayClusterConfig.authOptions",
        ),
        ({"ray_schema": schema("upgradeStrategy", "excludeHeadPodFromServeSvc")}, "know rayClusterConfig.authOptions,"),
        (
            {"operators": [operator("o:v1.4")]},
            f"the operator is 1.4 in namespace ray-system, this stack needs {PINNED}",
        ),
        (
            {"operators": [operator(f"o:v{PINNED}", "a", "--watch-namespace", "b,c")]},
            "no operator looks after namespace space, only those in a (b, c)",
        ),
    ],
)
def test_a_kuberay_that_does_not(seen: Json, words: str) -> None:
    [line] = kuberay.lacks(INPUTS, facts(**{"served": RAY, "ray_schema": FULL, **seen}))
    assert words in line


def test_who_puts_kuberay_right() -> None:
    shared = {"rayOperator": {**INPUTS["rayOperator"], "stack": "mi325x-4node"}}
    [line] = kuberay.lacks({**INPUTS, **shared}, facts(served={}))
    assert "run pulumi up in stack mi325x-4node" in line
    assert "rayOperator.install: chart" in kuberay.lacks(INPUTS, facts(served={}))[0]


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"operators": []}, ""),
        ({"operators": None}, ""),
        ({"operators": [operator(where="kuberay")], "own_operator": "kuberay"}, ""),
        ({"operators": [operator("o:v1", "elsewhere", "--watch-namespace", "other")]}, ""),
        ({"operators": [operator()]}, "set rayOperator.install: preinstalled"),
        (
            {"operators": [operator(f"o:v{PINNED}", "elsewhere", "--watch-namespace", "space")]},
            "fight over the RayService",
        ),
        ({"operators": [operator(where="kuberay")]}, f"(version {PINNED}), and two would fight"),
        ({"operators": [operator("o:v1", "kuberay", "--watch-namespace", "other")]}, "set rayOperator.namespace"),
        ({"operators": [operator()], "own_operator": "kuberay"}, "in namespace ray-system already"),
    ],
)
def test_an_operator_beside_the_one_that_is_to_be_installed(seen: Json, words: str) -> None:
    lines = kuberay.lacks({**INPUTS, **CHART}, facts(**seen))
    assert len(lines) == bool(words)
    assert words in "".join(lines)


def test_the_operator_that_the_same_update_removes_does_not_count() -> None:
    """From `install: chart` to `preinstalled`: the one that is there goes, and nothing would look after the service."""
    going = facts(served=RAY, ray_schema=FULL, operators=[operator(where="kuberay")], own_operator="kuberay")
    assert kuberay.lacks(INPUTS, going) == []
    assert "the one in namespace kuberay is this stack's, which the update removes" in kuberay.notes(INPUTS, going)[0]
    other = operator("o:v1.4", "ray-system")
    beside = facts(served=RAY, ray_schema=FULL, operators=[operator(where="kuberay"), other], own_operator="kuberay")
    assert "the operator is 1.4 in namespace ray-system" in kuberay.lacks(INPUTS, beside)[0]
    assert kuberay.notes(INPUTS, beside) == []


def test_an_operator_that_is_not_seen_is_only_noted() -> None:
    assert "may not list deployments" in kuberay.notes(INPUTS, facts(operators=None))[0]
    assert "none with its usual label" in kuberay.notes(INPUTS, facts(operators=[]))[0]
    assert kuberay.notes(INPUTS, facts(operators=[operator()])) == []
    assert kuberay.notes({**INPUTS, **CHART}, facts(operators=[])) == []
