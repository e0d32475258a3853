"""Parts of the simulated cluster that need none: what can be rehearsed, what a failure leaves, pods and programs."""

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from serving.node_profiles import PROFILES
from serving.stack import Stack, parse_settings
from tools.rehearsal import component, nodes, rehearsable, stack
from tools.rehearsal.landing import Landing
from tools.rehearsal.pod_keeper import PodKeeper
from tools.rehearsal.pods import Pods
from tools.rehearsal.state_directory import state_directory
from tools.toolchain.errors import ToolchainError

BASE = {"model": "qwen3-235b-a22b-fp8", "topology": "agg-2", "scenario": "qwen-16k-1k"}
DOKS = {"provider": "doks"}
POLICY = {"nicClusterPolicy": {"fabric0": ["eth1"]}}
CPU = {
    "platform": "cpu",
    "model": "rehearsal-qwen3-moe",
    "scenario": "rehearsal",
    "weights": {"mode": "local", "path": "/models"},
}
MULTUS = {"network": "multus", "hostDevices": {"fabric0": "fabric0"}}


def settings(cluster: dict[str, Any] = DOKS, **others: Any) -> Stack:
    made = parse_settings({**BASE, "cluster": cluster, **others})
    assert isinstance(made, Stack)
    return made


def existing(profile: str, **others: Any) -> dict[str, Any]:
    return {"provider": "existing", "profile": profile, **others}


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (settings({"provider": "stack", "stack": "a-pool"}), ["nodes of a-pool", "doks stack", "make rehearse-shell"]),
        (settings(existing("kind"), **CPU), ["profile kind", "simulated are doks, oke-mi300x"]),
        (settings(existing("oke-mi300x")), ["network sriov", "make rehearse-shell"]),
        (settings({**DOKS, "nodes": MULTUS}), ["network multus", "make rehearse-shell"]),
        (settings(existing("nvidia-network-operator", **POLICY)), ["NicClusterPolicy", "make rehearse-shell"]),
        (settings(monitoring="prometheus-operator"), ["PodMonitor", "make rehearse-shell"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_cannot_be_rehearsed_is_one_line(refused: Stack, words: list[str]) -> None:
    with pytest.raises(ToolchainError) as caught:
        rehearsable.check("mine", refused)
    line = str(caught.value)
    assert line.startswith("rehearse: mine ")
    assert all(word in line for word in words), line


def test_stack_that_makes_its_nodes_gets_none() -> None:
    rehearsable.check("mine", settings())
    assert rehearsable.nodes_of(settings()) == []


def test_each_profile_of_gpu_nodes_has_its_nodes() -> None:
    assert PROFILES.keys() - nodes.OF_PROFILE.keys() == {"kind"}


@pytest.mark.parametrize("name", nodes.OF_PROFILE)
def test_nodes_of_a_profile_offer_what_its_engines_ask_for(name: str) -> None:
    profile = PROFILES[name]
    made = rehearsable.nodes_of(settings(existing(name)))
    assert len({node["metadata"]["name"] for node in made}) == 2
    for node in made:
        offered = node["status"]["allocatable"]
        assert profile.node_selector.items() <= node["metadata"]["labels"].items()
        assert int(offered[profile.gpu_resource]) == profile.gpus_per_node
        assert all(int(offered[device]) >= count for device, count in profile.rdma_resources.items())
        assert int(offered["cpu"]) >= int(profile.engine_cpu)
        tolerated = {(it.key, it.value) for it in profile.tolerations}
        assert all({(taint["key"], taint.get("value")), (taint["key"], None)} & tolerated for taint in _taints(node))


def _taints(node: dict[str, Any]) -> list[dict[str, str]]:
    return node["spec"]["taints"]


class Cluster:
    """Stands in for the simulated cluster and for the project on it, whose `destroy` fails."""

    logs = Path("logs")

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None: ...

    def deploy(self, *_: object) -> None: ...

    def pulumi(self, *words: str) -> None:
        raise ToolchainError("rehearse", f"pulumi {words[0]} failed (above)", "again")


def test_destroy_that_fails_does_not_hide_where_the_pods_landed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    landed = Landing("a-pod", "engine", "", "Insufficient amd.com/gpu", 8, {}, 0, {})
    monkeypatch.setattr(stack, "SimulatedCluster", Cluster)
    monkeypatch.setattr(stack, "RehearsalProject", Cluster)
    monkeypatch.setattr(stack, "look", lambda *_: [landed])
    with pytest.raises(ToolchainError, match="pulumi destroy failed"):
        stack.rehearse("agg-2")
    printed = capsys.readouterr().out
    assert "nowhere: Insufficient amd.com/gpu" in printed
    assert "rehearse: WRONG: a-pod is on no node" in printed


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_state_directory_is_gone_at_the_end(places: Path) -> None:
    with state_directory("item") as folder:
        (folder / "etcd.log").touch()
    assert not list(places.iterdir())


def fail(folder: Path, error: BaseException) -> None:
    (folder / "etcd.log").touch()
    raise error


def test_what_was_started_there_ends_with_it(places: Path) -> None:
    """A plugin of a Pulumi that was killed has no parent any more, and waits for ever."""
    with state_directory("item") as folder:
        plugin = subprocess.Popen(["sleep", "600"], env={"PULUMI_HOME": str(folder / "pulumi")})
        other = subprocess.Popen(["sleep", "600"], env={"PULUMI_HOME": str(places)})
    try:
        assert not psutil.pid_exists(plugin.pid)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_state_directory_stays_for_its_logs_after_a_failure(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ToolchainError), state_directory("item") as folder:
        fail(folder, ToolchainError("etcd", "ended", "see etcd.log"))
    assert [path.name for path in folder.iterdir()] == ["etcd.log"]
    assert str(folder) in capsys.readouterr().out


def test_state_directory_without_a_log_is_no_use(places: Path) -> None:
    with pytest.raises(ToolchainError), state_directory("item"):
        raise ToolchainError("etcd", "not there", "run `make toolchain-cluster`")
    assert not list(places.iterdir())


def test_interruption_leaves_no_state_directory_and_says_so(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), state_directory("item") as folder:
        fail(folder, KeyboardInterrupt())
    assert not list(places.iterdir())
    assert capsys.readouterr().out == "item: interrupted; nothing is left\n"


def test_component_whose_nsenter_has_started_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component, "_GRACE_S", 0.2)
    stuck = component.Component("etcd", ["sleep", "600"], tmp_path / "etcd.log", {"PATH": "/usr/bin:/bin"})
    stuck.start()
    before = time.monotonic()
    stuck.stop()
    assert time.monotonic() - before < 30
    assert not stuck.running


def pod(name: str, uid: str, phase: str = "Running") -> Any:
    metadata = {"namespace": "ns", "name": name, "uid": uid, "labels": None, "annotations": None}
    spec = SimpleNamespace(node_name="node", containers=[SimpleNamespace(command=None)])
    return SimpleNamespace(
        metadata=SimpleNamespace(**metadata, deletion_timestamp=None), spec=spec, status=SimpleNamespace(phase=phase)
    )


def test_pods_that_went_while_nobody_watched_have_ended(tmp_path: Path) -> None:
    core = SimpleNamespace(patch_namespaced_pod=lambda *_: None)
    keeper = PodKeeper(Pods(tmp_path), core)
    keeper.compare([pod("stays", "1"), pod("goes", "2"), pod("comes-again", "3")])
    assert not any(keeper.ended("ns", name) for name in ("stays", "goes", "comes-again"))
    for _ in range(2):
        keeper.compare([pod("stays", "1"), pod("comes-again", "4"), pod("failed", "5", "Failed")])
        ended = {name for name in ("stays", "goes", "comes-again", "failed") if keeper.ended("ns", name)}
        assert ended == {"goes", "failed"}
