"""Whether the cluster has room: engine pods on their nodes, the Ray head on one without GPUs."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from infra.provider.kubernetes_api import Json
from infra.provider.preflight.facts import Facts
from infra.provider.preflight.quantities import Quantities, pod_requests, quantity, shown
from infra.provider.resource import Properties

_NAMED = 5  # nodes, pods or resources that a line names before it only counts
_REPELLING = ("NoSchedule", "NoExecute")  # PreferNoSchedule does not keep a pod away


@dataclass
class Room:
    """What is left of a node. holders: resource -> (amount, pod) of those who took it."""

    node: Json
    free: Quantities
    holders: dict[str, list[tuple[Decimal, str]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node["metadata"]["name"]

    def size(self, resource: str) -> Decimal:
        return quantity(self.node["status"].get("allocatable", {}).get(resource, 0))

    def fits(self, ask: Quantities) -> int:
        """How often `ask` fits into what is free."""
        return max(0, min(int(self.free.get(name, Decimal(0)) // amount) for name, amount in ask.items()))


def lacks(inputs: Properties, facts: Facts) -> list[str]:
    """One line for the engine pods and one for the head, at most."""
    if facts.nodes is None or facts.pods is None:
        return []  # notes() says so
    rooms = _rooms(facts.nodes, facts.pods, inputs)
    return [*_engines(inputs, rooms), *_head(inputs, rooms)]


def notes(inputs: Properties, facts: Facts) -> list[str]:
    """What could not be looked at."""
    hidden = [name for name, found in (("nodes", facts.nodes), ("pods", facts.pods)) if found is None]
    if not hidden:
        return []
    return [f"nodes: {facts.user} may not list {' and '.join(hidden)} of the whole cluster: free resources not checked"]


def _engines(inputs: Properties, rooms: list[Room]) -> list[str]:
    """Sets the engines' share of the rooms aside, too: the head comes after them."""
    ask, tolerations, needed = _engine_ask(inputs), inputs["tolerations"], inputs["nodes"]
    gpus = inputs["gpuResource"] if inputs["gpuResource"] in ask else ""
    candidates = [room for room in rooms if _selected(room.node, inputs["nodeSelector"])]
    if not candidates:
        where = _with_labels(inputs["nodeSelector"])
        return [f"nodes: there is none{where}; label nodes, or set cluster.nodes.nodeSelector"]
    # A pod with GPUs takes the whole node, and its ports; CPU replicas share one.
    most = 1 if gpus else needed
    places = {r.name: min(most, r.fits(ask)) for r in candidates if not _closed(r.node, tolerations)}
    there = sum(places.values())
    why = _why_not_more(candidates, places, ask, inputs) if there < needed else ""
    _set_aside(rooms, inputs, places, ask)
    if there >= needed:
        return []
    plural = "" if needed == 1 else "s"
    wanted = f"{needed} node{plural} with {ask[gpus]} free {gpus}" if gpus else f"room for {needed} engine pod{plural}"
    have = f"{there} have them" if gpus else f"there is room for {there}"
    return [f"nodes: needs {wanted}, {have}: {why}; free or add nodes, or set cluster.nodes to what is there"]


def _why_not_more(candidates: list[Room], places: dict[str, int], ask: Quantities, inputs: Properties) -> str:
    gpus, tolerations = inputs["gpuResource"], inputs["tolerations"]
    if gpus and not any(room.size(gpus) for room in candidates):
        return f"no node has {gpus} (is its device plugin running?)"
    others = [room for room in candidates if not (gpus and places.get(room.name))]
    # The nearest first: those that have GPUs at all, then those that only somebody else's pods keep full.
    others.sort(key=lambda room: (bool(gpus) and not room.size(gpus), bool(_closed(room.node, tolerations)), room.name))
    return _reasons(others, ask, tolerations) or "there are no others"


def _head(inputs: Properties, rooms: list[Room]) -> list[str]:
    ask = {"cpu": quantity(inputs["headCpu"]), "memory": quantity(inputs["headMemory"])}
    selector = inputs["systemNodeSelector"]
    candidates = [room for room in rooms if _selected(room.node, selector)]
    if not candidates:
        where = _with_labels(selector)
        return [f"Ray head: there is no node{where}; label one, or set cluster.nodes.systemNodeSelector"]
    if any(not _closed(room.node, []) and room.fits(ask) for room in candidates):
        return []
    candidates.sort(key=lambda room: (bool(_closed(room.node, [])), room.name))
    why = _reasons(candidates, ask, [])
    wanted = " and ".join(f"{shown(name, amount)} {name}" for name, amount in ask.items())
    return [
        f"Ray head: no CPU node has {wanted} free: {why}; free or add one, or lower cluster.nodes.headCpu and "
        "cluster.nodes.headMemory"
    ]


def _engine_ask(inputs: Properties) -> Quantities:
    devices = dict(sorted(inputs["rdmaResources"].items()))  # a protobuf map keeps no order
    if inputs["gpuResource"]:
        devices = {inputs["gpuResource"]: inputs["gpusPerNode"], **devices}
    asked = {**devices, "cpu": inputs["engineCpu"], "memory": inputs["engineMemory"]}
    return {name: amount for name, text in asked.items() if (amount := quantity(text))}


def _rooms(nodes: list[Json], pods: list[Json], inputs: Properties) -> list[Room]:
    """The nodes, less what pods on them hold: all but this stack's own, which make way for what is deployed."""
    rooms = {
        node["metadata"]["name"]: Room(
            node, {name: quantity(text) for name, text in node["status"].get("allocatable", {}).items()}
        )
        for node in nodes
    }
    for pod in pods:
        metadata, room = pod["metadata"], rooms.get(pod["spec"].get("nodeName", ""))
        ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if room is None or ended or _own(metadata, inputs):
            continue
        for resource, amount in pod_requests(pod).items():
            if resource in room.free and amount:
                room.free[resource] -= amount
                room.holders.setdefault(resource, []).append((amount, f"{metadata['namespace']}/{metadata['name']}"))
    return list(rooms.values())


def _own(metadata: Json, inputs: Properties) -> bool:
    instance = (metadata.get("labels") or {}).get("app.kubernetes.io/instance")
    # In the namespace that the stack had before, too: its service goes before the new one comes.
    return metadata["namespace"] in (inputs["namespace"], inputs.get("formerNamespace")) and instance == inputs["stack"]


def _set_aside(rooms: list[Room], inputs: Properties, places: dict[str, int], ask: Quantities) -> None:
    """Take the engines' share, where the head cannot be first."""

    def for_head(room: Room) -> bool:
        return _selected(room.node, inputs["systemNodeSelector"]) and not _closed(room.node, [])

    left = inputs["nodes"]
    for room in sorted(rooms, key=for_head):
        taken = min(left, places.get(room.name, 0))
        left -= taken
        for resource, amount in ask.items() if taken else ():
            room.free[resource] -= taken * amount
            room.holders.setdefault(resource, []).append((taken * amount, "this stack's engines"))


def _selected(node: Json, selector: dict[str, str]) -> bool:
    labels = node["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in selector.items())


def _closed(node: Json, tolerations: list[dict[str, Any]]) -> str:
    """Why no new pod with these tolerations comes to the node, or nothing."""
    conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions") or []}
    if conditions.get("Ready") != "True":
        return "is not Ready"
    if node["spec"].get("unschedulable"):
        return "is cordoned"
    for taint in node["spec"].get("taints") or []:
        if taint["effect"] in _REPELLING and not any(_tolerates(toleration, taint) for toleration in tolerations):
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"is tainted {taint['key']}{value}:{taint['effect']}"
    return ""


def _tolerates(toleration: dict[str, Any], taint: Json) -> bool:
    """As corev1.Toleration.ToleratesTaint."""
    if (effect := toleration.get("effect")) and effect != taint["effect"]:
        return False
    if (key := toleration.get("key")) and key != taint["key"]:
        return False
    exists = toleration.get("operator", "Equal") == "Exists"
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def _reasons(rooms: list[Room], ask: Quantities, tolerations: list[dict[str, Any]]) -> str:
    """Why the pod does not go there, node by node; one stands for those that have the same reason."""
    names: dict[str, list[str]] = {}
    for room in rooms:
        names.setdefault(_reason(room, ask, tolerations), []).append(room.name)
    return _some(
        [f"{nodes[0]} {why}" + (f" (and {len(nodes) - 1} more)" if nodes[1:] else "") for why, nodes in names.items()]
    )


def _reason(room: Room, ask: Quantities, tolerations: list[dict[str, Any]]) -> str:
    """`has 0 of 8 amd.com/gpu free (used by team-a/llm-worker-1)`."""
    if closed := _closed(room.node, tolerations):
        return closed
    if missing := [name for name in ask if not room.size(name)]:
        return f"lacks {_some(missing)}"
    for name, amount in ask.items():
        size, free = room.size(name), max(Decimal(0), room.free[name])
        if size < amount:
            return f"has only {shown(name, size)} of the {shown(name, amount)} {name} asked for"
        if free < amount:
            holders = [pod for _, pod in sorted(room.holders.get(name, []), reverse=True)]
            used = f" (used by {_some(holders, 3)})" if holders else ""
            return f"has {shown(name, free)} of {shown(name, size)} {name} free{used}"
    return f"has room for {room.fits(ask)}"


def _with_labels(selector: dict[str, str]) -> str:
    return " with the labels " + ", ".join(f"{key}={value}" for key, value in selector.items()) if selector else ""


def _some(names: list[str], most: int = _NAMED) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
