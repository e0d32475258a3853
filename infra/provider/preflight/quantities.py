"""Kubernetes quantities (`132`, `500m`, `1062Gi`), and what a pod asks for."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from serving.amounts import amount

Quantities = dict[str, Decimal]


def quantity(text: str | int | float) -> Decimal:
    """The number that a quantity of an object in the API stands for; unlike a setting it may have a sign."""
    written = str(text)
    return amount(written.lstrip("+-")) * (-1 if written.startswith("-") else 1)


def shown(resource: str, number: Decimal) -> str:
    """The number as people write it: `132`, `1062Gi` of memory."""
    if resource == "memory":
        gib = number / Decimal(1024) ** 3
        return f"{_short(gib)}Gi" if gib >= 1 or not gib else f"{_short(number / Decimal(1024) ** 2)}Mi"
    return _short(number)


def pod_requests(pod: Mapping[str, Any]) -> Quantities:
    """What the scheduler sets aside for a pod (component-helpers, resource.PodRequests).

    Sidecars are init containers that keep running; the others run one after another, each beside the sidecars that
    were started before it. A request that the pod itself names stands in place of its containers'.
    """
    spec = pod["spec"]
    sidecars: Quantities = {}
    peak: Quantities = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            sidecars = _sum([sidecars, _requests(container)])
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _sum([sidecars, _requests(container)]))
    running = _sum([sidecars, *(_requests(container) for container in spec["containers"])])
    overhead = {name: quantity(text) for name, text in (spec.get("overhead") or {}).items()}
    return _sum([_most(peak, running) | _requests(spec), overhead])


def _requests(owner: Mapping[str, Any]) -> Quantities:
    requests = (owner.get("resources") or {}).get("requests") or {}
    return {name: quantity(text) for name, text in requests.items()}


def _sum(parts: Iterable[Quantities]) -> Quantities:
    total: Quantities = {}
    for part in parts:
        for name, number in part.items():
            total[name] = total.get(name, Decimal(0)) + number
    return total


def _most(one: Quantities, other: Quantities) -> Quantities:
    return {name: max(one.get(name, Decimal(0)), other.get(name, Decimal(0))) for name in one.keys() | other.keys()}


def _short(number: Decimal) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".") if number % 1 else f"{number:.0f}"
