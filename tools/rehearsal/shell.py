"""A program of the user's in the cluster's network: its environment, and running it to its end."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence

from tools.rehearsal.cluster import SimulatedCluster
from tools.toolchain import kubernetes_provider
from tools.toolchain.checkout import VENV
from tools.toolchain.items import path
from tools.toolchain.shell_env import PASSPHRASE_VARIABLES

SIMULATED = """\
real       etcd, kube-apiserver, kube-controller-manager, kube-scheduler, KubeRay operator
simulated  nodes, containers (kwok), pod logs and exec, volumes (nothing is stored), Ray in head pods
private    network, KUBECONFIG, Pulumi home and backend; all of it is gone at the end"""


def environment(cluster: SimulatedCluster) -> dict[str, str]:
    """KUBECONFIG, kubectl and .venv/bin on PATH, and a Pulumi of its own: home, plugins, backend and passphrase.

    Raises ToolchainError when Pulumi's Kubernetes provider has not been made.
    """
    home, backend, scratch = (cluster.directory / name for name in ("pulumi", "backend", "tmp"))
    for folder in (backend, scratch):
        folder.mkdir(exist_ok=True)
    kubernetes_provider.put_into(home)
    kept = {k: v for k, v in cluster.env.items() if not k.startswith("PULUMI_")}
    return {
        **{k: v for k, v in kept.items() if k not in PASSPHRASE_VARIABLES},
        "PATH": f"{VENV / 'bin'}:{path('kubectl').parent}:{os.environ['PATH']}",
        # Pulumi's Kubernetes provider leaves a copy of the kubeconfig in the folder for temporary files.
        "TMPDIR": str(scratch),
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": f"file://{backend}",
        "PULUMI_CONFIG_PASSPHRASE": "rehearsal",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }


def run(cluster: SimulatedCluster, command: Sequence[str]) -> int:
    """Run it in the foreground, in the current folder; its exit code. Ctrl-C is for it and not for the cluster."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(
            cluster.enter(command),
            env=environment(cluster),
            check=False,
            preexec_fn=_hear_interrupts,
        ).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def default_command() -> list[str]:
    """The user's shell."""
    return [os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh"]


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
