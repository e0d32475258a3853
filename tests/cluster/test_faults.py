"""Things that go wrong in the middle of a deployment. Each ends in a clear message, and the next command repairs it."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from tests.cluster.conftest import ClusterShell, cluster_shell
from tests.cluster.deployment import api_of, everything, pods, ray_service, write_stack
from tests.cluster.fault_table import PLACE, UPDATE, Row, message, render
from tests.cluster.waiting import eventually
from tests.shell import Answer
from tools.rehearsal.cluster import SimulatedCluster

NAME = "faults"
rows: list[Row] = []


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, cluster: SimulatedCluster) -> Iterator[ClusterShell]:
    """One stack for all faults of this file: each is caused by an update of what the one before left repaired."""
    shell = cluster_shell(tmp_path_factory.mktemp("faults"), cluster)
    write_stack(shell, NAME, readyTimeoutSeconds=15)
    yield shell
    cluster.ray.set("RUNNING", namespace=NAME)
    shell.run("pulumi cancel --yes")
    destroy = shell.run("pulumi destroy --yes --skip-preview", 300)
    assert destroy.ok, destroy.text
    assert shell.run(f"kubectl delete namespace {NAME} --timeout=120s").ok


def finish(process: "subprocess.Popen[str]", seconds: float = 300) -> Answer:
    text, _ = process.communicate(timeout=seconds)
    return Answer(process.returncode, text)


def change(shell: ClusterShell) -> None:
    """Something that `pulumi up` has to roll out: one ingress process more."""
    settings = yaml.safe_load((shell.checkout / f"Pulumi.{NAME}.yaml").read_text())["config"]
    shell.write_stack(NAME, ingressReplicas=settings.get("pd-mi325x:ingressReplicas", 12) + 1, readyTimeoutSeconds=120)


def waiting_update(shell: ClusterShell) -> "subprocess.Popen[str]":
    """`pulumi up` of a change, once it waits for replicas, which do not come up until the test says so."""
    shell.cluster.ray.set("DEPLOYING", namespace=NAME)
    change(shell)
    process, text = shell.start("pulumi up --yes --skip-preview"), ""
    assert process.stdout is not None
    deadline = time.monotonic() + 120
    while "OpenAiIngress 0/" not in text:
        line = process.stdout.readline()
        assert line, text
        assert time.monotonic() < deadline, text
        text += line
    return process


def repaired(shell: ClusterShell) -> None:
    """The next `up` ends well, and there is nothing left to do."""
    shell.cluster.ray.set("RUNNING", namespace=NAME)
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    assert shell.run("pulumi preview --expect-no-changes").ok
    assert len(pods(api_of(shell), NAME, "engine")) == 3


def test_operator_absent(shell: ClusterShell) -> None:
    shell.cluster.stop("ray-operator")
    try:
        up = shell.run("pulumi up --yes --skip-preview", 300)
    finally:
        shell.cluster.start("ray-operator")
    assert not up.ok, up.text
    seen = message(up, r"RayService \S+ was not taken up by a KubeRay operator[^\n]*")
    rows.append(Row("no KubeRay operator runs", seen, "start one; `pulumi up` goes on"))
    shell.write_stack(NAME, readyTimeoutSeconds=120)
    repaired(shell)


def test_api_server_killed_and_restarted_during_up(shell: ClusterShell) -> None:
    process = waiting_update(shell)
    shell.cluster.stop("kube-apiserver", kill=True)
    time.sleep(3)
    shell.cluster.start("kube-apiserver")
    shell.cluster.ray.set("RUNNING", namespace=NAME)
    up = finish(process)
    assert up.ok, up.text
    seen = message(up, r"the API server to answer again")
    rows.append(Row("API server killed and restarted while `pulumi up` waits", seen, "nothing to do: `up` goes on"))
    assert shell.run("pulumi preview --expect-no-changes").ok


@pytest.mark.parametrize("provider", ["infra.provider", "pulumi-resource-kubernetes"])
def test_provider_killed_during_up(shell: ClusterShell, provider: str) -> None:
    process = waiting_update(shell)
    running = psutil.Process(process.pid).children(recursive=True)
    killed = [child for child in running if provider in " ".join(child.cmdline())]
    assert killed
    for child in killed:
        child.kill()
    shell.cluster.ray.set("RUNNING", namespace=NAME)
    up = finish(process)
    if provider == "infra.provider":
        assert not up.ok, up.text
        seen = message(up, r"error reading from server: EOF|the plugin[^\n]*|connection error[^\n]*")
        rows.append(Row("this repository's provider process killed", seen, "`pulumi up` goes on where it stopped"))
    else:
        assert up.ok, up.text
        rows.append(
            Row("Kubernetes provider process killed while `up` waits", "nothing", "nothing to do: `up` ends well")
        )
    repaired(shell)


def test_one_node_short(shell: ClusterShell) -> None:
    api = api_of(shell)
    before = everything(api)
    shell.write_stack(NAME, topology="3p2d")
    up = shell.run("pulumi up --yes")
    assert not up.ok
    seen = message(up, r"needs 5 nodes[^\n]*")
    rows.append(Row("one node short", seen, "add the node, or choose a smaller topology; nothing was made"))
    assert everything(api) <= before
    shell.write_stack(NAME, topology="2p1d")


def test_engine_fails(shell: ClusterShell) -> None:
    shell.cluster.ray.set("DEPLOY_FAILED", "torch.OutOfMemoryError: HIP out of memory.", namespace=NAME)
    change(shell)
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert not up.ok
    seen = message(up, r"application 'llm' is DEPLOY_FAILED[^\n]*")
    assert "HIP out of memory" in seen
    rows.append(Row("an engine cannot start", seen, "put right what it names; `pulumi up` goes on"))
    assert ray_service(api_of(shell), NAME)["kind"] == "RayService"  # still there to look into
    repaired(shell)


def test_never_ready(shell: ClusterShell) -> None:
    shell.cluster.ray.set("DEPLOYING", "waiting for a node", namespace=NAME)
    change(shell)
    shell.write_stack(NAME, readyTimeoutSeconds=10)
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert not up.ok
    seen = message(up, r"RayService \S+ does not serve after[^\n]*")
    rows.append(Row("RayService does not become ready in time", seen, "`pulumi up` waits again"))
    shell.write_stack(NAME, readyTimeoutSeconds=120)
    repaired(shell)


def test_namespace_stuck_terminating(shell: ClusterShell) -> None:
    api, place = api_of(shell), "stuck"
    hold = {"metadata": {"name": "hold", "namespace": place, "finalizers": ["example.com/hold"]}}
    api.post("/api/v1/namespaces", {"metadata": {"name": place}})
    api.post(f"/api/v1/namespaces/{place}/configmaps", hold)
    api.delete(f"/api/v1/namespaces/{place}")
    eventually(
        lambda: "finalizers remaining" in str(api.get(f"/api/v1/namespaces/{place}")), "it is seen what holds it"
    )
    write_stack(shell, "held", topology="1p1d", namespace=place)
    try:
        up = shell.run("pulumi up --yes --stack held", 120)
        assert not up.ok
        seen = message(up, r"namespace stuck is being deleted[^\n]*")
        rows.append(Row("namespace stuck terminating", seen, "`pulumi up` once it is gone"))
    finally:
        patch = '{"metadata":{"finalizers":null}}'
        shell.run(f"kubectl -n {place} patch configmap hold --type merge -p '{patch}'")
    assert shell.run(f"kubectl wait --for=delete namespace/{place} --timeout=60s").ok
    assert shell.run("pulumi stack select " + NAME).ok


def test_two_updates_at_once(shell: ClusterShell) -> None:
    process = waiting_update(shell)
    second = shell.run("pulumi up --yes")
    assert not second.ok
    seen = message(second, r"the stack is currently locked[^\n]*")
    rows.append(Row("two `pulumi up` on one stack", seen, "the first goes on; run the second after it"))
    shell.cluster.ray.set("RUNNING", namespace=NAME)
    first = finish(process)
    assert first.ok, first.text
    assert shell.run("pulumi preview --expect-no-changes").ok


def test_killed_and_cancelled(shell: ClusterShell) -> None:
    # Only a creation that is cut off stays in the state as pending; an update does not.
    undone = shell.run("pulumi destroy --yes --skip-preview --target '**RayServiceReady**' --target-dependents", 300)
    assert undone.ok, undone.text
    process = waiting_update(shell)
    plugins = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _, running = psutil.wait_procs(plugins, timeout=15)
    # Ours see that the engine is gone. Pulumi's own plugin does not.
    assert [p for p in running if "pulumi-resource-kubernetes" not in " ".join(p.cmdline())] == []
    for plugin in running:
        plugin.kill()
    locked = shell.run("pulumi up --yes")
    assert not locked.ok
    seen = message(locked, r"the stack is currently locked[^\n]*")
    then = (
        "`pulumi cancel`, then `pulumi up` goes on; where something was being made, it and `destroy` warn of pending "
        "operations until `pulumi refresh`, which asks, or `pulumi refresh --clear-pending-creates`; "
        "a `pulumi-resource-kubernetes` may still run: end it"
    )
    rows.append(Row("`kill -9` of `pulumi up`", seen, then))
    assert shell.run("pulumi cancel --yes").ok
    repaired(shell)
    warning = "pending operations"
    again = shell.run("pulumi up --yes --skip-preview", 300)
    assert again.ok
    assert warning in again.text, again.text
    cleared = shell.run("pulumi refresh --yes --skip-preview --clear-pending-creates", 300)
    assert cleared.ok, cleared.text
    cleaned = shell.run("pulumi up --yes --skip-preview", 300)
    assert cleaned.ok
    assert warning not in cleaned.text, cleaned.text


def test_page_says_what_was_seen(request: pytest.FixtureRequest) -> None:
    """Runs last in this file; with a part of the tests there is nothing to compare."""
    expected = [item for item in request.session.items if item.path == Path(__file__)]
    if len(rows) < len(expected) - 1:
        assert len(expected) == 1 or request.session.testsfailed, f"only {len(rows)} of {len(expected) - 1} rows"
        return
    if os.environ.get(UPDATE):
        PLACE.write_text(render(rows))
    written, seen = PLACE.read_text(), render(rows)
    other = [line for line in seen.splitlines() if line not in written.splitlines()]
    assert written == seen, f"{PLACE.name} is out of date; {UPDATE}=1 make test-cluster writes it: {other}"
