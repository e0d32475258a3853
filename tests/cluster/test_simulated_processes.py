"""The simulated cluster's processes: none is left over, and `python -m tools.rehearsal` starts them."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from kubernetes import client

from tests.cluster.waiting import eventually
from tests.shell import ROOT
from tools.rehearsal import control_plane, namespace, shell
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.component import Component
from tools.toolchain.errors import ToolchainError


def mentioning(directory: Path) -> list[psutil.Process]:
    """Processes that have this state directory in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
            ended = process.status() == psutil.STATUS_ZOMBIE  # between the two questions, and not yet collected
            if process.pid != os.getpid() and not ended and any(str(directory) in word for word in words):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_two_clusters_do_not_meet_and_leave_nothing(cluster: SimulatedCluster, tmp_path: Path) -> None:
    with SimulatedCluster(tmp_path / "other", gpu_nodes=1, cpu_nodes=0, operator=False) as other:
        with other.api() as there, cluster.api() as here:
            assert len(client.CoreV1Api(there).list_node().items) == 1
            assert len(client.CoreV1Api(here).list_node().items) == 6
        holder = other.namespace.pid
        assert mentioning(other.directory)
    assert not mentioning(other.directory)
    assert not psutil.pid_exists(holder)


OWNER = """
import sys, time
from pathlib import Path
from tools.rehearsal.cluster import SimulatedCluster
with SimulatedCluster(Path(sys.argv[1]), gpu_nodes=0, cpu_nodes=0, operator=False) as cluster:
    print(cluster.namespace.pid, flush=True)
    time.sleep(600)
"""


def test_a_killed_owner_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "orphan"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(directory)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    holder = int(owner.stdout.readline())
    assert len(mentioning(directory)) > 5
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    eventually(lambda: not mentioning(directory), "every process has ended", 10)
    eventually(lambda: not psutil.pid_exists(holder), "the namespace is gone", 10)


def test_two_interruptions_while_it_starts_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> list[str]:
        raise KeyboardInterrupt

    stop = Component.stop

    def interrupted_once(self: Component, kill: bool = False) -> None:
        monkeypatch.setattr(Component, "stop", stop)
        raise KeyboardInterrupt

    monkeypatch.setattr(control_plane, "apiserver", interrupted)  # etcd runs by then
    monkeypatch.setattr(Component, "stop", interrupted_once)
    cluster = SimulatedCluster(tmp_path)
    with pytest.raises(KeyboardInterrupt), cluster:
        pass
    assert not mentioning(tmp_path)
    assert not psutil.pid_exists(cluster.namespace.pid)


def test_api_server_that_fails_while_it_starts_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> list[str]:
        raise client.ApiException(status=403, reason="Forbidden")

    monkeypatch.setattr(control_plane, "apiserver", refused)
    with pytest.raises(ToolchainError, match=rf"Forbidden; see {tmp_path}/logs$"), SimulatedCluster(tmp_path):
        pass
    assert not mentioning(tmp_path)


def test_what_the_setup_complains_of_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talking = tmp_path / "ip"
    talking.write_text(f'#!/bin/sh\necho "warning: setlocale" >&2\nexec {shutil.which("ip")} "$@"\n')
    talking.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    namespace.Namespace().close()
    talking.write_text("#!/bin/sh\necho no such device >&2\nexit 1\n")
    with pytest.raises(ToolchainError, match="no such device"):
        namespace.Namespace()


def rehearsal(arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """`python -m tools.rehearsal ARGUMENTS`, outside of any cluster."""
    command = [sys.executable, "-m", "tools.rehearsal", *shlex.split(arguments)]
    environment = {**os.environ, **env}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_shell_runs_a_command_in_a_cluster_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    command = "'kubectl get nodes -o name; pulumi whoami -v; pulumi plugin ls; exit 3'"
    # A proxy that does not answer, which NO_PROXY does not keep from 127.0.0.1.
    proxy = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "", "no_proxy": ""}
    answer = rehearsal(f"shell --gpu-nodes 1 -- bash -c {command}", TMPDIR=str(tmp_path), **proxy)
    assert answer.returncode == 3, answer.stderr
    assert "encryptionsalt" in answer.stdout, "the shell's greeting does not say what stays"
    assert "node/mi325x-0\nnode/system-0\nnode/system-1\n" in answer.stdout
    assert f"Backend URL: file://{tmp_path}" in answer.stdout
    assert re.search(r"kubernetes +resource", answer.stdout)
    assert not list(tmp_path.iterdir())
    assert not mentioning(tmp_path)


def test_a_users_shell_is_no_failure_whatever_was_typed_last(
    cluster: SimulatedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "shell"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    monkeypatch.setenv("SHELL", str(program))
    assert shell.run(cluster, []) == 0
    assert shell.run(cluster, [str(program)]) == 7


def test_terminated_rehearsal_ends_pulumi_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.rehearsal", "up", "agg-2"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        lines = iter(run.stdout.readline, "")
        assert any("digitalocean" in line and "creating" in line for line in lines), "Pulumi has not begun"
        run.send_signal(signal.SIGTERM)
        rest = "".join(lines)
    assert run.returncode == 130
    assert "waiting for pulumi to clean up" in rest
    assert rest.endswith("interrupted; nothing is left\n")
    assert not list(tmp_path.iterdir())
    assert not mentioning(tmp_path)


@pytest.mark.parametrize("missing", ["unshare", "nsenter", "ip", "openssl"])
def test_a_missing_program_is_one_line(tmp_path: Path, missing: str) -> None:
    for name in {"unshare", "nsenter", "ip", "openssl"} - {missing}:
        (tmp_path / name).symlink_to(f"/bin/{name}")
    answer = rehearsal("shell -- true", PATH=str(tmp_path), TMPDIR=str(tmp_path))
    assert answer.returncode == 1
    assert re.fullmatch(rf"error: .*`{missing}` is not on PATH; install .*\n", answer.stderr)


def test_programs_that_are_not_built_are_one_line(tmp_path: Path) -> None:
    answer = rehearsal("shell -- true", PD_MI325X_CACHE=str(tmp_path / "empty"), TMPDIR=str(tmp_path))
    assert answer.returncode == 1
    assert re.fullmatch(r"error: etcd: .*; run `make toolchain-cluster`\n", answer.stderr)
    assert not mentioning(tmp_path)
