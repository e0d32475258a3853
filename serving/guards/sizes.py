"""Sizes that several guards ask for: amounts of Kubernetes, memory of GPUs, the model of an engine."""

from __future__ import annotations

import math
import re

from serving.amounts import amount
from serving.guards.located import Located
from serving.guards.view import Engine, Pod, View
from serving.models import MODELS, Model

GIB = 1024**3
# GPUs of a node with AMD's, where nobody says otherwise: node types of MI300X, MI325X and MI355X that are rented have
# 8, and some 1 (DigitalOcean, Vultr, OCI, Azure, Crusoe: their node types, read 2026-11). NVIDIA's have 4 as well.
GPUS_OF_A_NODE = 8

_MOST_RANKS = 4096  # more than any replica has; beyond it a number is a slip

# vllm 0.18 and 0.29, kv_connector/factory.py: those by which one engine gets KV from another.
_BETWEEN_ENGINES = (
    *("NixlConnector", "NixlPullConnector", "NixlPushConnector"),
    *("MoRIIOConnector", "MooncakeConnector", "P2pNcclConnector"),
)

# GPU memory by the name that Ray, a node's labels or a node type have in them: what the maker says, in GiB and so a
# little more than there is. MI325X has 256 and not the 288 that were announced (DigitalOcean's and Vultr's node types).
_MEMORY_GIB = {
    "MI300X": 192,
    "MI325X": 256,
    "MI350X": 288,
    "MI355X": 288,
    "H100": 94,  # of H100 NVL; others have 80
    "H200": 141,
    "A100-40G": 40,
    "A100": 80,
    "L40S": 48,
    "L4": 24,
    "A10G": 24,
    "T4": 16,
}
_NAME = re.compile(rf"(?<![a-z0-9])({'|'.join(_MEMORY_GIB)})(?![a-z0-9])", re.IGNORECASE)


def quantity(value: Located | None) -> float | None:
    """An amount in the words of the Kubernetes API, which holds no more than 2^63; None for what is none."""
    if value is None or isinstance(value.value, bool) or not isinstance(value.value, int | float | str):
        return None
    try:
        found = float(amount(str(value.value)))
    except (ValueError, ArithmeticError):
        return None
    return found if found < 2**63 else None


def ranks(engine: Engine) -> int:
    """Processes of one replica that compute, each with a GPU of its own; 0 where that is no sensible number."""
    sizes = [engine.integer(f"{kind}_parallel_size", 1) for kind in ("tensor", "pipeline", "data")]
    return math.prod(sizes) if min(sizes) > 0 and math.prod(sizes) <= _MOST_RANKS else 0


def sends_kv(engine: Engine) -> bool:
    """Whether an engine's KV goes to another one, and not to memory or a disk of its own."""
    connector = (engine.kv or {}).get("kv_connector")
    return connector is not None and connector.value in _BETWEEN_ENGINES


def gpu_memory(engine: Engine, view: View) -> int | None:
    """Bytes of one GPU that an engine runs on, rather more than fewer; None where nobody names the GPU."""
    named = engine.node.at("accelerator_type") if engine.by_ray else None
    said = [named.text] if named is not None and named.text else []
    selector = engine.pod.node.at("nodeSelector") if engine.pod else None
    said += [value.text for _, value in (selector.items() if selector else ()) if value.text]
    found = {_MEMORY_GIB[match[1].upper()] for text in said if (match := _NAME.search(text))}
    return found.pop() * GIB if len(found) == 1 else None


def known_model(engine: Engine, view: View) -> Model | None:
    """The model of an engine, if it is one whose shape this repository knows."""
    if view.model is not None:
        return view.model
    named = engine.model
    return next(
        (m for m in MODELS.values() if named is not None and m.repository and m.repository == named.value), None
    )


def alone_on_its_node(pod: Pod, view: View) -> bool:
    """Whether no second pod like this one finds GPUs, or is let, on a node. Where the nodes are not known it is."""
    rules = pod.node.at("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if rules is not None and rules.value:
        return True
    if view.node.gpus is None and (pod.gpus == 1 or "amd.com/gpu" not in pod.resources()):
        return True
    return 2 * pod.gpus > (view.node.gpus or GPUS_OF_A_NODE)


def runs_as_root(pod: Pod) -> bool | None:
    """Whether the container's first process is root's; None where neither the pod nor a known image says so."""
    for place in (pod.container, pod.node):
        user = place.at("securityContext", "runAsUser")
        if user is not None and user.integer is not None:
            return user.integer == 0
    for place in (pod.container, pod.node):
        other = place.at("securityContext", "runAsNonRoot")
        if other is not None and other.value is True:
            return False
    image = pod.container.at("image")
    # Ray's images end with `USER ray` (docker/base-deps/Dockerfile); vLLM's have no such line.
    return False if image is not None and re.match(r"(docker\.io/)?rayproject/ray", image.text or "") else None


def privileged(pod: Pod) -> Located | None:
    """Where a container says that it may do everything."""
    said = pod.container.at("securityContext", "privileged")
    return said if said is not None and said.value is True else None
