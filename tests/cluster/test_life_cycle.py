"""A topology stack from the shell, as a person types it: up, no change, drift, another topology, image, gone."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from infra.provider.kubernetes_api import KubernetesApi
from serving.stack import parse_stack
from serving.stack_files import load_stack
from tests.cluster.conftest import ClusterShell
from tests.cluster.deployment import IMAGES, api_of, everything, pods, ray_service, uids, write_stack
from tests.shell import assert_one_clear_line
from tools.rehearsal.landing import faults
from tools.rehearsal.stack import look

NAME = "life"
CHART = Path(__file__).with_name("charts") / "operator"


@contextmanager
def most_ray_clusters(api: KubernetesApi) -> Iterator[list[int]]:
    """Watches how many Ray clusters there are at once; the list holds the most."""
    most, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.is_set():
            most[0] = max(most[0], len(api.list(f"/apis/ray.io/v1/namespaces/{NAME}/rayclusters")))
            time.sleep(0.1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        stop.set()
        thread.join()


def replica_counts(api: KubernetesApi) -> dict[str, int]:
    application = yaml.safe_load(ray_service(api, NAME)["spec"]["serveConfigV2"])["applications"][0]
    return {entry["name"].split(":")[0]: entry["num_replicas"] for entry in application["deployments"]}


def test_the_life_of_a_stack(shell: ClusterShell) -> None:
    api = api_of(shell)
    before = everything(api)
    write_stack(shell, NAME)

    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    settings = load_stack("pd-2p1d")
    stack = parse_stack({**settings.model_dump(by_alias=True, exclude_unset=True), "images": IMAGES})
    assert faults(look(shell.cluster, stack, NAME), stack) == []
    assert shell.run("pulumi preview --expect-no-changes").ok

    # Another split of the same nodes: KubeRay hands it to Serve, and no pod is touched.
    engines, heads = uids(pods(api, NAME, "engine")), uids(pods(api, NAME, "head"))
    write_stack(shell, NAME, topology="1p2d")
    preview = shell.run("pulumi preview --diff")
    assert "replace" not in preview.text, preview.text
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    assert {"Prefill": 1, "Decode": 2}.items() <= replica_counts(api).items()
    assert (uids(pods(api, NAME, "engine")), uids(pods(api, NAME, "head"))) == (engines, heads)

    # Somebody edits the live object by hand.
    patch = json.dumps({"spec": {"serveConfigV2": ray_service(api, NAME)["spec"]["serveConfigV2"] + "\n# by hand"}})
    edit = shell.run(f"kubectl -n {NAME} patch rayservice llm --type merge -p '{patch}'")
    assert edit.ok, edit.text
    drift = shell.run("pulumi refresh --preview-only --expect-no-changes --non-interactive")
    assert not drift.ok, drift.text
    assert shell.run("pulumi refresh --yes").ok
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    assert "by hand" not in ray_service(api, NAME)["spec"]["serveConfigV2"]
    assert shell.run("pulumi preview --expect-no-changes").ok

    # Another image needs new pods: said beforehand, and the old ones are gone before the new ones come.
    write_stack(shell, NAME, images={**IMAGES, "engine": IMAGES["engine"][:-4] + "beef"})
    preview = shell.run("pulumi preview")
    assert "replace" in preview.text, preview.text
    with most_ray_clusters(api) as most:
        up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    assert most == [1]
    assert not uids(pods(api, NAME, "engine")) & engines
    assert pods(api, NAME, "engine")[0]["spec"]["containers"][0]["image"].endswith("beef")

    # The runs outlive the stack, and the next life of it finds them.
    claim = f"/api/v1/namespaces/{NAME}/persistentvolumeclaims/results"
    first = uids([api.get(claim) or {}])
    assert shell.run("pulumi destroy --yes --skip-preview", 300).ok
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    assert uids([api.get(claim) or {}]) == first

    destroy = shell.run("pulumi destroy --yes --skip-preview", 300)
    assert destroy.ok, destroy.text
    left = {(resource, name) for resource, _, name in everything(api) - before if resource != "persistentvolumes"}
    assert left == {("namespaces", NAME), ("persistentvolumeclaims", "results")}, left
    assert f"delete namespace/{NAME}" in destroy.text, destroy.text
    assert shell.run(f"kubectl delete namespace {NAME} --wait").ok


def test_what_somebody_else_has_in_the_namespace_is_left_alone(shell: ClusterShell) -> None:
    """Of the same names: Pulumi's server-side apply would write into them, and `destroy` delete them."""
    api, place = api_of(shell), "foreign"
    api.post("/api/v1/namespaces", {"metadata": {"name": place}})
    theirs = {"metadata": {"name": "benchmark-target"}, "data": {"mine": "precious"}}
    api.post(f"/api/v1/namespaces/{place}/configmaps", theirs)
    before = everything(api)
    write_stack(shell, "guest", topology="1p1d", namespace=place)
    try:
        assert_one_clear_line(shell.run("pulumi up --yes"), "ConfigMap benchmark-target", place, "pd-mi325x:namespace")
        assert everything(api) <= before
        kept = api.get(f"/api/v1/namespaces/{place}/configmaps/benchmark-target")
        assert kept
        assert kept["data"] == {"mine": "precious"}
    finally:
        api.delete(f"/api/v1/namespaces/{place}")


def test_a_namespace_of_somebody_else_is_not_made_the_operators(shell: ClusterShell) -> None:
    """The stack would label it as its own, and `destroy` delete it with all that is in it."""
    api, place = api_of(shell), "theirs"
    api.post("/api/v1/namespaces", {"metadata": {"name": place}})
    try:
        write_stack(shell, "tenant", topology="1p1d", rayOperator={"chart": str(CHART), "namespace": place})
        up = shell.run("pulumi up --yes")
        assert_one_clear_line(up, f"namespace {place}", "rayOperator.namespace", "not this stack's")
        there = api.get(f"/api/v1/namespaces/{place}")
        assert there
        assert "app.kubernetes.io/instance" not in there["metadata"]["labels"]
    finally:
        api.delete(f"/api/v1/namespaces/{place}")


def test_a_name_that_kubernetes_does_not_take(shell: ClusterShell) -> None:
    write_stack(shell, "PD.x", topology="1p1d")
    assert_one_clear_line(shell.run("pulumi preview"), "pd-mi325x:namespace", "PD.x")


def test_a_stack_whose_name_is_a_namespace_of_the_cluster(shell: ClusterShell) -> None:
    name = "kube-system"
    write_stack(shell, name, shipped="pd-1p1d")
    assert_one_clear_line(shell.run("pulumi preview"), "pd-mi325x:namespace", name, "the cluster's own")
    write_stack(shell, name, namespace="mine")
    assert shell.run("pulumi preview").ok
