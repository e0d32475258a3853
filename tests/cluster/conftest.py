"""A simulated Kubernetes cluster for the session, a shell in its network, and the checks before a deployment to it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from infra.provider.cluster_preflight import ClusterPreflight
from serving.versions import versions
from tests.cluster.waiting import eventually
from tests.shell import ROOT, Shell, copy_of_checkout
from tools.rehearsal.cluster import SimulatedCluster
from tools.toolchain import kubernetes_provider
from tools.toolchain.items import path as toolchain_path

Json = dict[str, Any]
Check = Callable[..., str]
NODES = 4  # with GPUs, in the session's cluster
POOL = "doks.digitalocean.com/node-pool"


class ClusterShell(Shell):
    """A shell whose commands run where the cluster's API server and pods have their addresses, with its kubeconfig."""

    def __init__(self, checkout: Path, home: Path, cluster: SimulatedCluster) -> None:
        super().__init__(checkout, home)
        self.cluster = cluster
        self.env["KUBECONFIG"] = str(cluster.kubeconfig)
        # Pulumi's Kubernetes provider leaves a copy of the kubeconfig in the folder for temporary files.
        self.env["TMPDIR"] = str(home)
        self.env["PATH"] = f"{toolchain_path('kubectl').parent}:{self.env['PATH']}"
        for name in [name for name in self.env if name.lower().endswith("_proxy")]:
            del self.env[name]  # it is outside of the cluster's network

    def words(self, command: str) -> list[str]:
        return self.cluster.enter(super().words(command))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedCluster]:
    """Four MI325X nodes, two system nodes and the KubeRay operator. Tests use namespaces of their own."""
    with SimulatedCluster(tmp_path_factory.mktemp("cluster"), gpu_nodes=4, cpu_nodes=2) as cluster:
        yield cluster


@pytest.fixture
def api(cluster: SimulatedCluster) -> Iterator[client.ApiClient]:
    """The cluster's administrator, for this process."""
    with cluster.api() as api:
        yield api


# The client's models have every field optional; `Any` keeps the tests readable.
@pytest.fixture
def core(api: client.ApiClient) -> Any:
    """CoreV1Api of the administrator."""
    return client.CoreV1Api(api)


@pytest.fixture
def batch(api: client.ApiClient) -> Any:
    """BatchV1Api of the administrator."""
    return client.BatchV1Api(api)


@pytest.fixture
def namespace(core: Any) -> Iterator[str]:
    """A Kubernetes namespace of the test's own; its end does not wait until the last object is gone."""
    name = core.create_namespace({"metadata": {"generateName": "test-"}}).metadata.name
    yield name
    core.delete_namespace(name)


@pytest.fixture
def shell(tmp_path: Path, cluster: SimulatedCluster) -> ClusterShell:
    """A shell in a fresh copy of the checkout and in the cluster's network; borrows this checkout's environment."""
    return cluster_shell(tmp_path, cluster)


def cluster_shell(place: Path, cluster: SimulatedCluster) -> ClusterShell:
    """Such a shell whose files are in `place`."""
    checkout = copy_of_checkout(place / "checkout")
    (checkout / ".venv").symlink_to(ROOT / ".venv")
    shell = ClusterShell(checkout, place / "home", cluster)
    kubernetes_provider.put_into(place / "home" / "pulumi")
    return shell


@pytest.fixture
def preflight_inputs(cluster: SimulatedCluster, namespace: str) -> Json:
    """A stack of DOKS nodes that takes all of them, as infra/cluster_preflight.py describes it to the provider."""
    return {
        "kubeconfig": str(cluster.outside_kubeconfig),
        "context": "",
        "contextChosen": True,
        "stack": "pd-test",
        "namespace": namespace,
        "wait": False,
        "timeoutSeconds": 60,
        "nodes": NODES,
        "gpuResource": "amd.com/gpu",
        "gpusPerNode": 8,
        "engineCpu": "132",
        "engineMemory": "1062Gi",
        "rdmaResources": {f"rdma/fabric{nic}": 1 for nic in range(8)},
        "tolerations": [{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeSelector": {POOL: "mi325x"},
        "systemNodeSelector": {POOL: "system"},
        "headCpu": "4",
        "headMemory": "10Gi",
        "rayOperator": {
            "install": "preinstalled",
            "version": versions()["kuberay"]["version"],
            "namespace": "kuberay",
            "stack": "",
        },
        "network": "host",
        "attachments": [],
        "hostDevices": {},
        "nicClusterPolicy": False,
        "monitoring": "none",
        "inspectsFabric": False,
        "storageClass": "",
        "resultsSize": "20Gi",
        "podSecurity": "privileged",
        "pullSecret": "",
        "persistentVolume": False,
    }


@pytest.fixture
def lacks(preflight_inputs: Json) -> Check:
    """All lines of one check, with these inputs changed."""

    def check(**changes: Any) -> str:
        return "\n".join(ClusterPreflight().check({}, {**preflight_inputs, **changes}))

    eventually(lambda: check() == "", "the cluster is free again after another test")
    return check
