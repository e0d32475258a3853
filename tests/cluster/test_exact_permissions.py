"""Whether the rights that the pre-flight asks for are all that is used: a user who has these and no others.

Pulumi's Kubernetes provider watches more than it makes, and where it may not it waits without a word, for ever.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from infra.provider.preflight.facts import Permission
from infra.provider.preflight.permissions import needed
from serving.kubernetes_names import labels
from tests.cluster.benchmark_stage import RUN, Stage
from tests.cluster.conftest import ClusterShell
from tests.cluster.deployment import NO_FABRIC, write_stack
from tests.cluster.stand_in_definitions import stand_in_definitions
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.pods import Play

CHART = Path(__file__).with_name("charts") / "operator"
DEVICES = {"roce-net-fabric0": "fabric0"}
POLICIES = ("mellanox.com", "v1alpha1", "nicclusterpolicies")
Json = dict[str, Any]


@pytest.fixture
def definitions(api: client.ApiClient) -> Iterator[None]:
    """Other people's, while the test lasts, and that of the stand-in for KubeRay's chart, which a stack leaves."""
    left = [
        document["metadata"]["name"] for document in yaml.safe_load_all((CHART / "crds" / "operated.yaml").read_text())
    ]
    with stand_in_definitions(api, "fabric", "monitoring", left=left):
        yield


def rules(permissions: list[Permission]) -> list[Json]:
    """Of a role that allows these and nothing else."""
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": [it.verb for it in found]}
        for (group, resource), found in groupby(permissions, key=lambda it: (it.group, it.resource))
    ]


def user(cluster: SimulatedCluster, name: str, permissions: list[Permission]) -> Path:
    """The kubeconfig of a new user with a role in each namespace, and one for the whole cluster."""
    everywhere, *inside = (
        (namespace, list(found)) for namespace, found in groupby(sorted(permissions, key=_place), key=_place)
    )
    assert everywhere[0] == ""
    kubeconfig = cluster.restricted_kubeconfig(name, rules(sorted(everywhere[1])))
    with cluster.api() as api:
        rbac: Any = client.RbacAuthorizationV1Api(api)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}]
        for namespace, found in inside:
            body: Json = {"metadata": {"name": name}}
            rbac.create_namespaced_role(namespace, {**body, "rules": rules(sorted(found))})
            rbac.create_namespaced_role_binding(namespace, {**body, "subjects": subjects, "roleRef": reference})
    return kubeconfig


def _place(permission: Permission) -> str:
    return permission.namespace


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("apart", [False, True], ids=["operator beside the service", "operator apart"])
def test_a_user_with_these_rights_only(
    shell: ClusterShell, cluster: SimulatedCluster, core: Any, tmp_path: Path, apart: bool
) -> None:
    """A stack that makes every kind of object there is: up, no change, a benchmark, other weights, destroy."""
    name = f"exact-{'apart' if apart else 'beside'}"
    operator = f"{name}-operator" if apart else name
    core.create_namespace({"metadata": {"name": name}})
    if apart:  # as the last update left it
        core.create_namespace({"metadata": {"name": operator, "labels": labels(name, "ray-operator")}})
    # In the cluster's network a pod gets its NICs from attachments; in the node's the inspector tells which there are.
    devices = DEVICES if apart else {}
    inputs = {
        "namespace": name,
        "rayOperator": {"install": "chart", "namespace": operator},
        "persistentVolume": True,
        "attachments": [],
        "hostDevices": devices,
        "inspectsFabric": not apart,
        "nicClusterPolicy": True,
        "monitoring": "prometheus-operator",
    }
    kubeconfig = user(cluster, name, needed(inputs))
    nodes = {"network": "multus", "hostDevices": devices} if apart else {}
    policy = {"rdma/fabric0": ["ens1f0np0"]}
    cluster.pods.play(Play("weights-download-*", name, log="complete\n", outcome="succeeded"))
    settings: Json = {
        "shipped": "pd-1p1d",
        "cluster": {"provider": "existing", "kubeconfig": str(kubeconfig), "nodes": nodes, "nicClusterPolicy": policy},
        "rayOperator": {"chart": str(CHART), **({"namespace": operator} if apart else {})},
        "weights": {"mode": "nfs", "revision": "a" * 40, "nfs": {"server": "10.0.0.5", "path": "/export"}},
        "huggingFaceToken": "hf_x",
        "monitoring": "prometheus-operator",
        "fabric": NO_FABRIC if apart else {"gate": "required"},
    }
    write_stack(shell, name, **settings)
    try:
        up = shell.run("pulumi up --yes --skip-preview", 120)
        assert up.ok, up.text
        if not apart:
            assert "36 runs passed between 4 nodes" in up.text, up.text
            assert "may not patch nodes" in up.text
        assert shell.run("pulumi preview --refresh --expect-no-changes").ok
        _measure(shell, cluster, name, tmp_path)
        if apart:  # other weights, while a finished benchmark still names the claim of these
            write_stack(shell, name, **{**settings, "weights": {**settings["weights"], "size": "700Gi"}})
            again = shell.run("pulumi up --yes --skip-preview", 120)
            assert again.ok, again.text
        destroy = shell.run("pulumi destroy --yes --skip-preview", 120)
        assert destroy.ok, destroy.text
        assert "was not seen" not in destroy.text, destroy.text
        assert [it.metadata.name for it in core.list_namespace().items if it.metadata.name == operator] == (
            [] if apart else [name]
        )
    finally:
        core.delete_namespace(name)


def _measure(shell: ClusterShell, cluster: SimulatedCluster, name: str, folder: Path) -> None:
    """`make benchmark`, with the credentials of the stack."""
    stage = Stage(cluster, name, folder, name)
    stage.on_the_volume([1, 1.5, 2])
    measuring = shell.start(".venv/bin/python -m infra.benchmark_job.dispatch benchmark --scenario rehearsal")
    pod = stage.pod()
    stage.directory(pod).append_log(f"run directory: /results/{name}/{RUN}\n")
    stage.end(pod, 0)
    text, _ = measuring.communicate(timeout=90)
    assert measuring.returncode == 0, text
    assert "may not" not in text
    assert "forbidden" not in text
