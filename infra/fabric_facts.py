"""Resource pd:index:FabricFacts, for the program."""

from typing import Any

import pulumi

from infra.cluster.access import KubernetesAccess


class FabricFacts(pulumi.CustomResource):
    """See infra/provider/fabric_facts.py."""

    environment: pulumi.Output[dict[str, str]]
    supplementalGroups: pulumi.Output[list[int]]  # noqa: N815  names on the wire
    devices: pulumi.Output[list[str]]
    hardware: pulumi.Output[list[str]]
    linkGbps: pulumi.Output[float]  # noqa: N815
    nodes: pulumi.Output[list[str]]

    def __init__(self, name: str, access: KubernetesAccess, inputs: dict[str, Any], opts: pulumi.ResourceOptions):
        outputs = dict.fromkeys(
            ("environment", "supplementalGroups", "devices", "hardware", "linkGbps", "nodes", "findings", "toldBy")
        )
        super().__init__("pd:index:FabricFacts", name, {**access.inputs, **inputs, **outputs}, access.after_it(opts))
