"""A node's fabric as labels and annotations of its Kubernetes Node, for a writer elsewhere."""

import json
import re

from serving.fabric.choose import Choice
from serving.fabric.node import NodeFabric
from serving.kubernetes_names import FIELD_MANAGER

PREFIX = f"{FIELD_MANAGER}/"  # the project's name, as on all that it makes
_LABEL_VALUE = 63  # most characters of a label's value (Kubernetes: labels and selectors)


def node_labels(fabric: NodeFabric, choice: Choice) -> dict[str, str | None]:
    """What node selectors and people look for. None: to be removed, as a merge patch does.

    fabric: usable, unusable or none. fabric-rate: Gb/s of the slowest NIC in use.
    """
    ports = [port for device, port in fabric.ports if f"{device.name}:{port.number}" in choice.net_devices]
    rates = [port.rate_gbps for port in ports if port.rate_gbps]
    layers = sorted({"roce" if port.link_layer == "Ethernet" else "infiniband" for port in ports})
    state = "none" if not fabric.devices else "usable" if choice.usable else "unusable"
    values = {
        "fabric": state,
        "fabric-nics": str(len(ports)),
        "fabric-rate": f"{min(rates):g}" if rates else None,
        "fabric-link-layer": "-".join(layers) or None,
        "fabric-gid-index": None if not ports else "auto" if choice.gid_index is None else str(choice.gid_index),
        "fabric-traffic-class": None if choice.traffic_class is None else str(choice.traffic_class),
        "gpu-direct": choice.gpu_direct.method,
        "render-group": "-".join(str(group) for group in choice.supplemental_groups) or None,
        "amdgpu": fabric.kernel.amdgpu,
    }
    return {f"{PREFIX}{name}": value and label_value(value) for name, value in values.items()}


def node_annotations(fabric: NodeFabric, choice: Choice) -> dict[str, str | None]:
    """What is too long for a label. `fabric-facts` is a NodeFabric, which `model_validate_json` reads back."""
    findings = [finding.model_dump(exclude_defaults=True) for finding in choice.findings]
    values = {
        "ucx-environment": _compact(choice.environment) if choice.environment else None,
        "fabric-excluded": _compact(choice.excluded) if choice.excluded else None,
        "fabric-findings": _compact(findings) if findings else None,
        "fabric-facts": fabric.model_dump_json(exclude_defaults=True),
    }
    return {f"{PREFIX}{name}": value for name, value in values.items()}


def label_value(text: str) -> str:
    """`text` as a label's value: letters, digits and `-_.`, alphanumeric at the ends, cut to the length allowed."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:_LABEL_VALUE].strip("-_.")


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
