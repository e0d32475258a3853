"""What infra/cluster/doks.py asks DigitalOcean for, and what it refuses to ask."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from infra.cluster import doks
from serving.cluster import DoksCluster as Settings
from serving.errors import ConfigError
from serving.node_profiles import PROFILES
from serving.versions import versions

# The SDK's own modules warn of each other's old names.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
MINOR = versions()["kubernetes"]["version"].rpartition(".")[0]
OFFERED = [f"{MINOR}.{patch}-do.{build}" for patch, build in ((9, 0), (10, 1), (10, 0))] + ["1.1.1-do.0"]


class Cloud(pulumi.runtime.Mocks):
    def __init__(self, offered: list[str]) -> None:
        self.offered = offered
        self.inputs: dict[str, dict[str, Any]] = {}

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        self.inputs[args.typ.rpartition(":")[2]] = args.inputs
        computed = {"kubeConfigs": [{"rawConfig": "the kubeconfig"}], "clusterSubnet": "10.1.0.0/16"}
        return f"{args.name}-id", {**args.inputs, **(computed if args.typ.endswith(":KubernetesCluster") else {})}

    def call(self, args: pulumi.runtime.MockCallArgs) -> Any:
        return {"id": "1", "validVersions": self.offered}


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DIGITALOCEAN_TOKEN", "a token")
    yield
    pulumi.runtime.settings.reset_options()


def ask(nodes: int = 4, offered: list[str] = OFFERED, **settings: Any) -> tuple[Cloud, dict[str, Any]]:
    """Run the component; what it registered, and what came out of it."""
    cloud, seen = Cloud(offered), {}
    pulumi.runtime.set_mocks(cloud, project="pd-mi325x", stack="pool")

    @pulumi.runtime.test
    def program() -> pulumi.Output[None]:
        cluster = doks.DoksCluster("nodes", Settings.model_validate({"provider": "doks", **settings}), nodes)
        seen["access"], kubeconfig = cluster.access, pulumi.Output.from_input(cluster.access.kubeconfig)
        secret = pulumi.Output.from_input(kubeconfig.is_secret())
        return pulumi.Output.all(kubeconfig, secret).apply(lambda both: seen.update(kubeconfig=both[0], secret=both[1]))

    program()
    return cloud, seen


def test_the_cluster_and_its_pools() -> None:
    cloud, seen = ask(nodes=4)
    cluster, pool = cloud.inputs["KubernetesCluster"], cloud.inputs["KubernetesNodePool"]
    assert cloud.inputs["Vpc"] == {"region": "atl1", "ipRange": "10.100.32.0/20"}
    assert cluster["vpcUuid"] == "nodes-vpc-id"
    assert cluster["nodePool"]["nodeCount"] == 2
    selector = PROFILES["doks"].system_node_selector
    assert selector == {"doks.digitalocean.com/node-pool": cluster["nodePool"]["name"]}
    for plugin in ("amdGpuDevicePlugin", "amdGpuDeviceMetricsExporterPlugin", "rdmaSharedDevicePlugin"):
        assert cluster[plugin] == {"enabled": True}
    assert (cluster["autoUpgrade"], cluster["surgeUpgrade"], cluster["ha"]) == (False, False, True)
    assert pool["nodeCount"] == 4
    assert pool["clusterId"] == "nodes-id"
    assert pool["size"] == "gpu-mi325x8-2048gb-fabric-contracted"
    assert pool["gpuPartitionMode"] == "AMD_PARTITION_MODE_SPX_NPS1"
    assert (seen["kubeconfig"], seen["secret"], seen["access"].waits) == ("the kubeconfig", True, True)
    assert {type(one).__name__ for one in seen["access"].depends_on} >= {"KubernetesCluster", "KubernetesNodePool"}


@pytest.mark.parametrize("answer", [[], [SimpleNamespace(raw_config=None)], [SimpleNamespace(raw_config="")]])
def test_a_cluster_without_a_kubeconfig_is_not_taken_for_the_default_one(
    monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", said.append)
    with pytest.raises(SystemExit):
        doks._kubeconfig(answer)
    assert said[0].startswith("DigitalOcean gave no kubeconfig")


def test_nodes_are_closed_to_the_outside() -> None:
    firewall = ask(vpcIpRange="10.9.0.0/20")[0].inputs["Firewall"]
    assert firewall["tags"] == ["k8s:nodes-id"]
    assert {rule["protocol"] for rule in firewall["inboundRules"]} == {"tcp", "udp", "icmp"}
    for rule in firewall["inboundRules"]:
        assert rule["sourceAddresses"] == ["10.1.0.0/16", "10.9.0.0/20"]
    for rule in firewall["outboundRules"]:  # without any the nodes could not pull an image
        assert rule["destinationAddresses"] == ["0.0.0.0/0", "::/0"]


@pytest.mark.parametrize("addresses", [[], ["198.51.100.7/32", "203.0.113.0/24"]])
def test_the_api_server_is_open_to_whom_it_may_concern(addresses: list[str]) -> None:
    cluster = ask(allowApiFrom=addresses)[0].inputs["KubernetesCluster"]
    assert cluster["controlPlaneFirewall"] == {"enabled": bool(addresses), "allowedAddresses": addresses}


def test_the_newest_patch_of_the_pinned_minor_release() -> None:
    assert ask()[0].inputs["KubernetesCluster"]["version"] == f"{MINOR}.10-do.1"
    assert ask(version="1.2.3-do.4", offered=[])[0].inputs["KubernetesCluster"]["version"] == "1.2.3-do.4"


def test_a_minor_release_that_doks_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi, "warn", said.append)
    assert ask(offered=["1.1.1-do.0"])[0].inputs["KubernetesCluster"]["version"] == MINOR
    assert "cluster.version" in said[0]
    assert "1.1.1-do.0" in said[0]


@pytest.mark.parametrize(
    ("settings", "key", "words"),
    [
        ({"version": "1.34"}, "cluster.version", "'1.34'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_registered(
    settings: dict[str, Any], key: str, words: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        ask(**settings)
    assert refusal.value.key == f"pd-mi325x:{key}"
    assert words in str(refusal.value)


def test_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIGITALOCEAN_TOKEN")
    monkeypatch.delenv("DIGITALOCEAN_ACCESS_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="DIGITALOCEAN_TOKEN"):
        ask()
    monkeypatch.setenv("DIGITALOCEAN_ACCESS_TOKEN", "a token")
    ask()
