"""From nothing on DigitalOcean, played by a stand-in: nodes, service, benchmark; a pool that outlives its stacks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.provider.kubernetes_api import KubernetesApi
from serving.stack_files import load_stack, stack_names
from tests.cluster.deployment import IMAGES, NO_FABRIC
from tests.shell import ROOT, Shell, assert_one_clear_line, copy_of_checkout
from tools.rehearsal import stand_in_plugins
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.landing import faults
from tools.rehearsal.stack import look
from tools.toolchain import kubernetes_provider

PREINSTALLED = {"install": "preinstalled"}
BUILT = {"build": {"registry": "registry.example/team"}}
SETTINGS = {"images": IMAGES, "readyTimeoutSeconds": 180, "fabric": NO_FABRIC}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedCluster]:
    """A control plane without a node: the stand-in makes them."""
    with SimulatedCluster(tmp_path_factory.mktemp("empty"), gpu_nodes=0, cpu_nodes=0) as cluster:
        yield cluster


@pytest.fixture
def person(tmp_path: Path, empty: SimulatedCluster) -> Shell:
    """Somebody with an account at the stand-in."""
    checkout = copy_of_checkout(tmp_path / "checkout")
    (checkout / ".venv").symlink_to(ROOT / ".venv")
    shell = Shell(checkout, tmp_path / "home")
    kubernetes_provider.put_into(tmp_path / "home" / "pulumi")
    stand_in_plugins.put_into(tmp_path / "home" / "pulumi")
    state = tmp_path / "digitalocean"
    state.mkdir()
    shell.env |= {
        "PD_REHEARSAL_STATE": str(state),
        "PD_REHEARSAL_KUBECONFIG": str(empty.outside_kubeconfig),
        "DIGITALOCEAN_TOKEN": "a-token-of-nobody",
    }
    return shell


def one_of_each_model() -> list[str]:
    """Prefill/decode and aggregated by turns. That every shipped stack's manifests are good: test_strict_validation.py.

    `make rehearse STACK=…` does the same with any of them.
    """
    stacks = {name: load_stack(name) for name in stack_names()}
    models = sorted({stack.model for stack in stacks.values() if stack.target == "kubernetes"})
    return [
        next(
            name
            for name, stack in stacks.items()
            if (stack.target, stack.model, stack.topology_.disaggregated) == ("kubernetes", model, bool(number % 2))
        )
        for number, model in enumerate(models, start=1)
    ]


def select(shell: Shell, name: str, **config: object) -> None:
    shell.write_stack(name, **config)
    selected = shell.run(f"pulumi stack select --create {name}")
    assert selected.ok, selected.text


def nodes(cluster: SimulatedCluster) -> list[str]:
    return [it["metadata"]["name"] for it in KubernetesApi(str(cluster.outside_kubeconfig)).list("/api/v1/nodes")]


def pods(cluster: SimulatedCluster, namespace: str) -> list[dict[str, Any]]:
    return KubernetesApi(str(cluster.outside_kubeconfig)).list(f"/api/v1/namespaces/{namespace}/pods")


@pytest.mark.parametrize(("name", "images"), list(zip(one_of_each_model(), (IMAGES, BUILT), strict=True)))
def test_a_shipped_stack_from_nothing(
    name: str, images: dict[str, object], person: Shell, empty: SimulatedCluster
) -> None:
    select(person, name, rayOperator=PREINSTALLED, **{**SETTINGS, "images": images})
    up = person.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    assert faults(look(empty, load_stack(name), name), load_stack(name)) == []
    assert len(nodes(empty)) == 2 + load_stack(name).topology_.replicas
    taken = {container["image"] for pod in pods(empty, name) for container in pod["spec"]["containers"]}
    if images is BUILT:
        digest = "@sha256:[0-9a-f]{64}"
        assert all(re.fullmatch(rf"registry.example/team/engine-rocm:{name}{digest}", image) for image in taken), taken
    else:
        assert taken == {IMAGES["engine"]}
    state = person.run("pulumi stack export").text
    assert "certificate-authority" not in state, "a kubeconfig stands in the state in clear"
    destroy = person.run("pulumi destroy --yes --skip-preview", 300)
    assert destroy.ok, destroy.text
    assert nodes(empty) == []


def test_two_topologies_after_each_other_on_a_pool_of_another_stack(person: Shell, empty: SimulatedCluster) -> None:
    select(person, "mi325x-4node", rayOperator=PREINSTALLED)
    up = person.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    pool = nodes(empty)
    assert len(pool) == 6

    on_pool = {"cluster": {"provider": "stack", "stack": "mi325x-4node"}}
    for name in ("pd-2p1d", "agg-4"):
        select(person, name, **SETTINGS, **on_pool)
        up = person.run("pulumi up --yes --skip-preview", 300)
        assert up.ok, up.text
        assert faults(look(empty, load_stack(name), name), load_stack(name)) == []
        if name == "pd-2p1d":
            select(person, "agg-4", **SETTINGS, **on_pool)
            # The nodes are taken, and it is said before anything is made.
            assert_one_clear_line(person.run("pulumi up --yes"), "needs 4 nodes", "1 ", "pd-2p1d")
            assert person.run("pulumi stack select pd-2p1d").ok
        destroy = person.run("pulumi destroy --yes --skip-preview", 300)
        assert destroy.ok, destroy.text
        assert nodes(empty) == pool, "a topology stack took nodes along that it does not own"
        way_in = "pulumi stack output kubeconfig --show-secrets --stack mi325x-4node > FILE"
        assert way_in in destroy.text, destroy.text
        assert f"kubectl --kubeconfig FILE delete namespace/{name}" in destroy.text, destroy.text

    assert person.run("pulumi stack select mi325x-4node").ok
    destroy = person.run("pulumi destroy --yes --skip-preview", 300)
    assert destroy.ok, destroy.text
    assert nodes(empty) == []
    for name in ("pd-2p1d", "agg-4"):  # their results, on disks that DigitalOcean keeps
        assert re.search(rf"doctl compute volume delete \S+  # {name}/results", destroy.text), destroy.text
