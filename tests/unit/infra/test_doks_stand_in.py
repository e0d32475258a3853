"""The stand-in for DigitalOcean's provider: it must refuse what the real one refuses, or rehearsals prove nothing."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from pulumi.runtime.proto import provider_pb2

from tests.shell import ROOT
from tools.rehearsal.digitalocean import Provider
from tools.rehearsal.digitalocean_store import Store
from tools.rehearsal.pulumi_wire import UNKNOWN, secret_keys, struct, values

# The SDK's own modules warn of each other's old names.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
LAUNCHER = ROOT / "tools" / "rehearsal" / "plugins" / "stand-in"
POOL = {"name": "system", "size": "s-8vcpu-16gb-amd", "nodeCount": 2}
GPU_POOL = {"name": "mi325x", "size": "gpu-mi325x8-2048gb-fabric-contracted", "nodeCount": 2, "clusterId": "c"}
RULE = {"protocol": "icmp", "sourceAddresses": ["10.0.0.0/8"]}
SOME, NONE = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE


class Refused(Exception):
    pass


class Context:
    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise Refused(details)


class Cloud:
    """The engine's side of the conversation, without an engine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.provider = Provider(Store(directory))

    def check(self, kind: str, inputs: dict[str, Any]) -> list[str]:
        request = provider_pb2.CheckRequest(urn=_urn(kind), news=struct(inputs))
        return [failure.reason for failure in self.provider.Check(request, Context()).failures]

    def diff(self, kind: str, olds: dict[str, Any], news: dict[str, Any]) -> provider_pb2.DiffResponse:
        request = provider_pb2.DiffRequest(urn=_urn(kind), old_inputs=struct(olds), news=struct(news))
        return self.provider.Diff(request, Context())

    def create(self, kind: str, inputs: dict[str, Any]) -> provider_pb2.CreateResponse:
        request = provider_pb2.CreateRequest(urn=_urn(kind), properties=struct(inputs))
        return self.provider.Create(request, Context())

    def cluster(self, **inputs: Any) -> provider_pb2.CreateResponse:
        version = self.provider._api.versions()[0]
        return self.create("kubernetesCluster", {"name": "c", "version": version, "nodePool": POOL, **inputs})


def _urn(kind: str) -> str:
    return f"urn:pulumi:s::p::pd-mi325x:cluster:Doks$digitalocean:index/{kind}:{kind[0].upper()}{kind[1:]}::it"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    monkeypatch.delenv("PD_REHEARSAL_KUBECONFIG", raising=False)
    return Cloud(tmp_path)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("vpc", {"region": "atl1", "ipRange": "10.1.0.0/20"}),
        ("kubernetesCluster", {"region": "atl1", "version": "1", "nodePool": POOL, "vpcUuid": UNKNOWN}),
        ("kubernetesNodePool", {**GPU_POOL, "gpuPartitionMode": "AMD_PARTITION_MODE_DPX_NPS2"}),
        ("firewall", {"tags": UNKNOWN, "inboundRules": [RULE]}),
        ("firewall", {"inboundRules": UNKNOWN}),
    ],
)
def test_inputs_that_the_sdk_has(cloud: Cloud, kind: str, inputs: dict[str, Any]) -> None:
    assert cloud.check(kind, inputs) == []


@pytest.mark.parametrize(
    ("kind", "inputs", "words"),
    [
        ("vpc", {"regoin": "atl1"}, "regoin: unexpected property"),
        ("vpc", {"ipRange": "10.1.0.0/20"}, "region: missing"),
        ("vpc", {"region": 1}, "region: expected str"),
        ("vpc", {"region": "mars1"}, "region: 'mars1' is none of"),
        ("vpc", {"region": "atl1", "ipRange": "10.0.0.0/8"}, "/16 to /24"),
        ("kubernetesNodePool", {**GPU_POOL, "size": "gpu-mi325x9"}, "size: 'gpu-mi325x9' is none of"),
        ("kubernetesNodePool", {**GPU_POOL, "nodeCount": 0}, "nodeCount: expected to be at least (1)"),
        ("kubernetesNodePool", {**GPU_POOL, "nodeCount": "2"}, "nodeCount: expected int"),
        ("kubernetesNodePool", {**GPU_POOL, "nodeCount": 2.5}, "nodeCount: expected int"),
        ("kubernetesNodePool", {**GPU_POOL, "autoScale": 1}, "autoScale: expected bool"),
        ("kubernetesNodePool", {**GPU_POOL, "gpuPartitionMode": "SPX"}, "gpuPartitionMode: 'SPX' is none of"),
        ("kubernetesNodePool", {**GPU_POOL, "labels": {"a": 1}}, "labels.a: expected str"),
        ("kubernetesNodePool", {**GPU_POOL, "taints": [{"key": "a", "effect": "b"}]}, "taints[0].value: missing"),
        ("firewall", {}, "at least one rule"),
        ("firewall", {"inboundRules": [{**RULE, "protocol": "tcp"}]}, "portRange: is required"),
        ("firewall", {"inboundRules": [{**RULE, "source_addresses": []}]}, "inboundRules[0].source_addresses"),
    ],
)
def test_inputs_that_are_none(cloud: Cloud, kind: str, inputs: dict[str, Any], words: str) -> None:
    assert any(words in reason for reason in cloud.check(kind, inputs)), cloud.check(kind, inputs)


@pytest.mark.parametrize(
    ("kind", "olds", "news", "replaces"),
    [
        ("kubernetesNodePool", GPU_POOL, GPU_POOL, None),
        ("kubernetesNodePool", GPU_POOL, {**GPU_POOL, "nodeCount": 3, "tags": ["a"], "name": "b"}, []),
        ("kubernetesNodePool", GPU_POOL, {**GPU_POOL, "size": "gpu-mi325x8-2048gb"}, ["size"]),
        ("kubernetesNodePool", GPU_POOL, {**GPU_POOL, "clusterId": UNKNOWN}, ["clusterId"]),
        ("kubernetesCluster", {"nodePool": POOL}, {"nodePool": {**POOL, "nodeCount": 3}}, []),
        ("kubernetesCluster", {"nodePool": POOL}, {"nodePool": {**POOL, "size": "s-8vcpu-16gb"}}, ["nodePool"]),
        ("kubernetesCluster", {"version": "1.9.1-do.0"}, {"version": "1.10.0-do.0"}, []),
        ("kubernetesCluster", {"version": "1.10.0-do.0"}, {"version": "1.9.1-do.0"}, ["version"]),
        ("vpc", {"region": "atl1"}, {"region": "nyc2"}, ["region"]),
        ("firewall", {"inboundRules": [RULE]}, {"inboundRules": []}, []),
    ],
)
def test_what_can_be_changed_in_place(
    cloud: Cloud, kind: str, olds: dict[str, Any], news: dict[str, Any], replaces: list[str] | None
) -> None:
    found = cloud.diff(kind, olds, news)
    assert found.changes == (NONE if replaces is None else SOME)
    assert list(found.replaces) == (replaces or [])


def test_the_kubeconfig_is_marked_as_a_secret(cloud: Cloud) -> None:
    made = cloud.cluster()
    assert secret_keys(made.properties) == {"kubeConfigs"}
    assert "rawConfig" not in (cloud.directory / "objects.json").read_text()
    read = cloud.provider.Read(
        provider_pb2.ReadRequest(id=made.id, urn=_urn("kubernetesCluster"), properties=made.properties), Context()
    )
    assert secret_keys(read.properties) == {"kubeConfigs"}
    assert values(read.properties) == values(made.properties)


def test_the_test_clusters_kubeconfig_is_handed_out(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = cloud.directory / "kubeconfig"
    kubeconfig.write_text("clusters: [{cluster: {server: https://a:1}}]\nusers: [{user: {token: t}}]\n")
    monkeypatch.setenv("PD_REHEARSAL_KUBECONFIG", str(kubeconfig))
    monkeypatch.setattr("tools.rehearsal.digitalocean_nodes.add", lambda *_: None)
    (found,) = values(cloud.cluster().properties)["kubeConfigs"]
    assert found["rawConfig"] == kubeconfig.read_text()
    assert (found["host"], found["token"]) == ("https://a:1", "t")


def test_what_the_api_refuses(cloud: Cloud) -> None:
    vpc = cloud.create("vpc", {"name": "v", "region": "atl1", "ipRange": "10.1.0.0/20"})
    with pytest.raises(Refused, match="overlaps"):
        cloud.create("vpc", {"name": "w", "region": "nyc2", "ipRange": "10.1.8.0/24"})
    made = cloud.cluster(vpcUuid=vpc.id, ha=True)
    with pytest.raises(Refused, match="already in use"):
        cloud.cluster()
    with pytest.raises(Refused, match="invalid version slug"):
        cloud.cluster(version="1.1")
    with pytest.raises(Refused, match="clusterId c could not be found"):
        cloud.create("kubernetesNodePool", GPU_POOL)
    with pytest.raises(Refused, match="VPC with members"):
        cloud.provider.Delete(provider_pb2.DeleteRequest(id=vpc.id), Context())
    news = struct({"name": "c", "nodePool": POOL, "ha": False})
    with pytest.raises(Refused, match="cannot be disabled"):
        cloud.provider.Update(
            provider_pb2.UpdateRequest(id=made.id, urn=_urn("kubernetesCluster"), news=news), Context()
        )


def test_a_deleted_cluster_takes_its_pools_along(cloud: Cloud) -> None:
    made = cloud.cluster()
    pool = cloud.create("kubernetesNodePool", {**GPU_POOL, "clusterId": made.id})
    cloud.provider.Delete(provider_pb2.DeleteRequest(id=made.id), Context())
    read = provider_pb2.ReadRequest(id=pool.id, urn=_urn("kubernetesNodePool"), properties=pool.properties)
    assert cloud.provider.Read(read, Context()).id == ""


def test_a_ctrl_c_ends_a_wait(cloud: Cloud) -> None:
    (cloud.directory / "faults.json").write_text('{"delay": {"vpc": 600}}')
    cloud.provider.Cancel(None, Context())
    with pytest.raises(Refused, match="interrupted"):
        cloud.create("vpc", {"name": "v", "region": "atl1"})
    assert not (cloud.directory / "objects.json").exists()


def _plugin(command: list[str], state: Path) -> "subprocess.Popen[str]":
    env = {**os.environ, "PD_REHEARSAL_STATE": str(state)}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_engines_signal_ends_the_plugin_without_a_word(tmp_path: Path) -> None:
    with _plugin([str(LAUNCHER), "digitalocean", "127.0.0.1:1"], tmp_path) as plugin:
        assert plugin.stdout
        assert int(plugin.stdout.readline()) > 0
        plugin.send_signal(signal.SIGINT)
        rest, errors = plugin.communicate(timeout=20)
    assert (plugin.returncode, rest, errors) == (0, "", "")


def test_the_plugin_ends_with_an_engine_that_was_killed(tmp_path: Path) -> None:
    command = f"'{LAUNCHER}' digitalocean & echo $!; sleep 600"
    with _plugin(["bash", "-c", command], tmp_path) as engine:
        assert engine.stdout
        plugin = psutil.Process(int(engine.stdout.readline()))
        engine.stdout.readline()  # the port: it serves
        for child in psutil.Process(engine.pid).children():
            if child.pid != plugin.pid:
                child.kill()
        engine.kill()
        deadline = time.monotonic() + 20
        while plugin.is_running() and plugin.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_it_is_not_started_by_mistake() -> None:
    env = {key: value for key, value in os.environ.items() if key != "PD_REHEARSAL_STATE"}
    started = subprocess.run(
        [LAUNCHER, "digitalocean"], env=env, capture_output=True, text=True, check=False, timeout=20
    )
    assert started.returncode == 1
    assert "stand-in" in started.stderr
