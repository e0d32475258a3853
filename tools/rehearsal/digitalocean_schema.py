"""Which inputs DigitalOcean's provider takes: names and types from its SDK's classes, and what its schema adds.

Sources of the rest: the Terraform provider that the Pulumi provider is made from (kubernetes.go, firewalls.go,
resource_vpc.go: validation, ForceNew), and the SDK's own texts. One difference, on purpose: an unknown size is refused
in the preview here, and by the API when something is made there.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi_digitalocean as do

from tools.rehearsal.pulumi_wire import Properties, unknown
from tools.rehearsal.sdk_types import wrong_types


@dataclass(frozen=True)
class Kind:
    """arguments: the SDK's class. replaces: property paths that cannot be changed in place."""

    arguments: type
    replaces: frozenset[str]


KINDS = {
    "vpc": Kind(do.VpcArgs, frozenset({"region", "ipRange"})),
    "kubernetesCluster": Kind(
        do.KubernetesClusterArgs,
        frozenset(
            {
                *("region", "vpcUuid", "clusterSubnet", "serviceSubnet", "isolatedWorkers", "workerSubnetUuid"),
                *("nodePool.size", "nodePool.gpuPartitionMode"),
            }
        ),
    ),
    "kubernetesNodePool": Kind(do.KubernetesNodePoolArgs, frozenset({"clusterId", "size", "gpuPartitionMode"})),
    "firewall": Kind(do.FirewallArgs, frozenset()),
}
REGIONS = {region.value for region in do.Region} | {"atl1"}  # where GPU pages name it; the SDK's list is older
# CPU sizes of the SDK, and the GPU sizes of DigitalOcean's pages, read 2026-11 (the SDK knows one GPU size).
SIZES = {size.value for size in do.DropletSlug} | {
    *("gpu-mi325x1-256gb", "gpu-mi325x1-256gb-contracted", "gpu-mi325x8-2048gb", "gpu-mi325x8-2048gb-contracted"),
    *("gpu-mi325x8-2048gb-fabric-contracted", "gpu-mi300x8-1536gb-fabric-contracted"),
    *("gpu-mi350x8-2304gb-fabric-contracted", "gpu-mi350x8-2304gb-spot", "gpu-mi355x8-2304gb-spot"),
}
PARTITION_MODES = {"AMD_PARTITION_MODE_SPX_NPS1", "AMD_PARTITION_MODE_DPX_NPS2"}


def problems(kind: str, inputs: Properties) -> list[str]:
    """What the provider would refuse, one line each, with the property's path."""
    wrong = wrong_types(KINDS[kind].arguments, inputs)
    return wrong or [problem for problem in _values(kind, inputs) if problem]


def _values(kind: str, inputs: Properties) -> Iterator[str]:
    if "region" in inputs:
        yield _one_of("region", inputs["region"], REGIONS)
    if kind == "vpc":
        yield _range(inputs.get("ipRange"))
    elif kind == "kubernetesNodePool":
        yield from _pool(inputs, "")
    elif kind == "kubernetesCluster":
        yield from _pool(inputs["nodePool"], "nodePool.")
        if inputs.get("amdGpuDevicePlugin", {}).get("enabled") and inputs.get("amdGpuDraDriver", {}).get("enabled"):
            yield "amdGpuDevicePlugin: excludes amdGpuDraDriver"
    else:
        yield from _rules(inputs)


def _pool(pool: Properties, path: str) -> Iterator[str]:
    if not isinstance(pool, Mapping):
        return  # not known yet
    yield _one_of(f"{path}size", pool["size"], SIZES)
    if "gpuPartitionMode" in pool:
        yield _one_of(f"{path}gpuPartitionMode", pool["gpuPartitionMode"], PARTITION_MODES)
    if "nodeCount" in pool and not unknown(pool["nodeCount"]) and pool["nodeCount"] < 1:
        yield f"{path}nodeCount: expected to be at least (1), got {pool['nodeCount']}"


def _rules(inputs: Properties) -> Iterator[str]:
    given = [inputs[key] for key in ("inboundRules", "outboundRules") if inputs.get(key)]
    if not given:
        yield "at least one rule must be specified"
    for rule in (rule for rules in given if isinstance(rules, list) for rule in rules):
        yield _one_of("protocol", rule["protocol"], {"tcp", "udp", "icmp"})
        if rule["protocol"] != "icmp" and not rule.get("portRange"):
            yield "portRange: is required if protocol is tcp or udp"


def _one_of(path: str, value: Any, known: set[str]) -> str:
    return "" if unknown(value) or value in known else f"{path}: {value!r} is none of {', '.join(sorted(known))}"


def _range(value: Any) -> str:
    if value is None or unknown(value):
        return ""
    try:
        network = ipaddress.ip_network(value)
    except ValueError as error:
        return f"ipRange: {error}"
    fits = network.is_private and 16 <= network.prefixlen <= 24
    return "" if fits else f"ipRange: {value} is not a private range from /16 to /24"
