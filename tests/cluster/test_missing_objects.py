"""Objects that Pulumi's state has and the cluster has not: said in one line, and repaired by what the line says."""

import shutil
from collections.abc import Iterator

import pytest

from tests.cluster.conftest import ClusterShell, cluster_shell
from tests.cluster.deployment import api_of, pods, ray_service, write_stack
from tests.shell import assert_one_clear_line
from tools.rehearsal.cluster import SimulatedCluster

NAME = "missing"
REMEDY = "run `pulumi refresh`, then `pulumi up`"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, cluster: SimulatedCluster) -> Iterator[ClusterShell]:
    """One stack for all of this file, with a kubeconfig of its own; each test leaves it whole."""
    shell = cluster_shell(tmp_path_factory.mktemp("missing"), cluster)
    shutil.copy2(cluster.kubeconfig, shell.checkout / "kubeconfig")
    write_stack(shell, NAME, shipped="pd-1p1d", cluster=_with_kubeconfig(shell, "kubeconfig"))
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    yield shell
    shell.run(f"kubectl delete namespace {NAME} --timeout=120s")


def _with_kubeconfig(shell: ClusterShell, file: str) -> dict[str, str]:
    return {"provider": "existing", "kubeconfig": str(shell.checkout / file)}


def kubectl(shell: ClusterShell, command: str) -> None:
    done = shell.run(f"kubectl -n {NAME} {command}")
    assert done.ok, done.text


def repaired(shell: ClusterShell) -> None:
    for command in ("refresh --yes", "up --yes --skip-preview", "preview --refresh --expect-no-changes"):
        done = shell.run(f"pulumi {command}", 300)
        assert done.ok, done.text
    assert ray_service(api_of(shell), NAME)


def test_what_somebody_deleted(shell: ClusterShell) -> None:
    """Pulumi's provider would say `configmaps "benchmark-target" not found`, and every change would end with that."""
    kubectl(shell, "delete rayservice llm --wait")
    assert_one_clear_line(shell.run("pulumi preview"), f"RayService llm is gone from namespace {NAME}", REMEDY)
    kubectl(shell, "delete configmap benchmark-target --wait")
    write_stack(shell, NAME, scenario="rehearsal")  # so that the ConfigMap is to be changed
    for command in ("pulumi preview", "pulumi up --yes --skip-preview"):
        answer = shell.run(command)
        assert_one_clear_line(answer, f"ConfigMap benchmark-target is gone from namespace {NAME}", REMEDY)
        assert "not found" not in answer.text, answer.text
    repaired(shell)


def test_a_destroy_that_broke_off(shell: ClusterShell) -> None:
    """Its requests have reached the API server, and Pulumi was ended before it wrote that down."""
    state = shell.run(
        "pulumi state delete --yes --force $(pulumi stack --show-urns | grep -o 'urn.*RayServiceReady.*')"
    )
    assert state.ok, state.text
    kubectl(shell, "delete service llm-metrics --wait")
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert_one_clear_line(up, f"Service llm-metrics is gone from namespace {NAME}", REMEDY)
    repaired(shell)


def test_a_deleted_namespace(shell: ClusterShell) -> None:
    done = shell.run(f"kubectl delete namespace {NAME} --timeout=120s")
    assert done.ok, done.text
    assert_one_clear_line(shell.run("pulumi preview"), f"Namespace {NAME} is gone", REMEDY)
    repaired(shell)


def test_a_kubeconfig_that_is_gone(shell: ClusterShell) -> None:
    """Pulumi's provider alone would end with the advice to forget all of the stack, which would go on running."""
    moved = shell.checkout / "kubeconfig"
    new = moved.rename(moved.with_name("elsewhere"))
    destroy = shell.run("pulumi destroy --yes --skip-preview", 300)
    assert_one_clear_line(destroy, f"kubeconfig {moved} does not exist", "put it back, or run `pulumi up`")
    assert "UNREACHABLE" not in destroy.text, destroy.text
    assert_one_clear_line(shell.run("pulumi preview"), f"kubeconfig {moved} does not exist", "cluster.kubeconfig")
    assert pods(api_of(shell), NAME, "engine") != []
    write_stack(shell, NAME, cluster=_with_kubeconfig(shell, new.name))
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text


def test_a_context_that_was_renamed(shell: ClusterShell) -> None:
    """The same, with the file there; the command in the line puts it right."""
    file = next(file for name in ("kubeconfig", "elsewhere") if (file := shell.checkout / name).exists())
    config = f"kubectl --kubeconfig {file} config"
    before = shell.run(f"{config} current-context").text.strip()
    assert shell.run(f"{config} rename-context {before} renamed").ok
    destroy = shell.run("pulumi destroy --yes --skip-preview", 300)
    back = f"{config} rename-context NAME {before}"
    assert_one_clear_line(destroy, f"context '{before}' is not in kubeconfig {file}", f"`{back}`", "there are: renamed")
    assert "UNREACHABLE" not in destroy.text, destroy.text
    assert "RayServiceReady" in shell.run("pulumi stack").text, "so that the next destroy stops as well"
    assert shell.run(back.replace("NAME", "renamed")).ok
    unchanged = shell.run("pulumi preview --expect-no-changes")
    assert unchanged.ok, unchanged.text


def test_a_cluster_that_is_gone_for_good(shell: ClusterShell) -> None:
    """The documented way: it was this stack's last cluster, and nobody will find anything there."""
    for file in ("kubeconfig", "elsewhere"):
        (shell.checkout / file).unlink(missing_ok=True)
    forget = "PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --yes --skip-preview"
    destroy = shell.run(forget, 300)
    assert destroy.ok, destroy.text
    assert "ray-service" not in shell.run("pulumi stack").text
