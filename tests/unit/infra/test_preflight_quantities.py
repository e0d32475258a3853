"""Kubernetes quantities and pod requests, against values worked out by hand."""

from decimal import Decimal
from typing import Any

import pytest

from infra.provider.preflight.quantities import pod_requests, quantity, shown


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("132", 132),
        (8, 8),
        ("500m", Decimal("0.5")),
        ("100u", Decimal("0.0001")),
        ("1062Gi", 1062 * 2**30),
        ("1.5Ki", 1536),
        ("2k", 2000),
        ("1M", 10**6),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("12E2", 1200),
        ("2E", 2 * 10**18),
        ("-1", -1),
    ],
)
def test_quantities(text: str | int, number: int | Decimal) -> None:
    assert quantity(text) == number


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "1.2.3", "many"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        quantity(text)


@pytest.mark.parametrize(
    ("resource", "text", "as_read"),
    [
        ("memory", "1062Gi", "1062Gi"),
        ("memory", "1536Mi", "1.5Gi"),
        ("memory", "512Mi", "512Mi"),
        ("memory", "0", "0Gi"),
        ("cpu", "7910m", "7.9"),
        ("cpu", "0", "0"),
        ("cpu", "100", "100"),
        ("amd.com/gpu", "8", "8"),
    ],
)
def test_as_people_write_it(resource: str, text: str, as_read: str) -> None:
    assert shown(resource, quantity(text)) == as_read


def container(cpu: str = "", **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}} if cpu else {}, **more}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("1"), container("500m"), container()]}, "1.5"),
        ({"containers": [container("1")], "initContainers": [container("3"), container("2")]}, "3"),
        ({"containers": [container("4")], "initContainers": [container("3")]}, "4"),
        ({"containers": [container("1")], "initContainers": [container("1", **SIDECAR)]}, "2"),
        ({"containers": [container("1")], "initContainers": [container("1", **SIDECAR), container("5")]}, "6"),
        ({"containers": [container("1")], "initContainers": [container("5"), container("1", **SIDECAR)]}, "5"),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, "1.25"),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}}, "3"),
    ],
)
def test_what_a_pod_asks_for(spec: dict[str, Any], cpu: str) -> None:
    assert pod_requests({"spec": spec}) == {"cpu": Decimal(cpu)}


def test_a_pod_that_asks_for_nothing() -> None:
    assert pod_requests({"spec": {"containers": [{"name": "a", "resources": None}]}}) == {}
