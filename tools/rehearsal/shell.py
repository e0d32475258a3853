"""A program of the user's in the cluster's network: its environment, and running it to its end."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence

from tools.project_copy import private_pulumi
from tools.rehearsal import stand_in_plugins
from tools.rehearsal.cluster import SIMULATED, SimulatedCluster
from tools.toolchain import kubernetes_provider
from tools.toolchain.items import path

GREETING = f"""\
{SIMULATED}
private    network, KUBECONFIG, Pulumi home and backend; all of it is gone at the end
providers  stand-ins for DigitalOcean's (a `doks` stack gets simulated nodes) and docker-build's (an image is not built)
stays      what changes in this folder: Pulumi writes `encryptionsalt` into each stack file that it uses"""


_MAKE = ("MAKELEVEL", "MAKEFLAGS", "MFLAGS")


def environment(cluster: SimulatedCluster) -> dict[str, str]:
    """KUBECONFIG, kubectl and .venv/bin on PATH, and a Pulumi of its own: home, plugins, backend and passphrase.

    Raises ToolchainError when Pulumi's Kubernetes provider has not been made.
    """
    home, backend, scratch = (cluster.directory / name for name in ("pulumi", "backend", "tmp"))
    for folder in (backend, scratch):
        folder.mkdir(exist_ok=True)
    kubernetes_provider.put_into(home)
    stand_in_plugins.put_into(home)
    stand_ins = cluster.directory / "digitalocean"
    stand_ins.mkdir(exist_ok=True)
    tools_first = f"{path('kubectl').parent}{os.pathsep}{cluster.env['PATH']}"
    return {
        # Without what `make rehearse-shell` tells its own commands: a make in the shell is nobody's part.
        **private_pulumi(
            {name: value for name, value in cluster.env.items() if name not in _MAKE} | {"PATH": tools_first},
            home=home,
            backend=backend,
        ),
        "PD_REHEARSAL_STATE": str(stand_ins),
        "PD_REHEARSAL_KUBECONFIG": str(cluster.outside_kubeconfig),
        "DIGITALOCEAN_TOKEN": "simulated",
        "PULUMI_CONFIG_PASSPHRASE": "rehearsal",
        # Pulumi's Kubernetes provider leaves a copy of the kubeconfig in the folder for temporary files.
        "TMPDIR": str(scratch),
    }


def run(cluster: SimulatedCluster, command: Sequence[str]) -> int:
    """Run it, or without one the user's shell, in the foreground and the current folder; an exit code.

    Ctrl-C is for it and not for the cluster. A shell ends with the code of whatever was typed last in it: no news.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = subprocess.run(
            cluster.enter(command or [os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh"]),
            env=environment(cluster),
            check=False,
            preexec_fn=_hear_interrupts,
        )
        return done.returncode if command else 0
    finally:
        signal.signal(signal.SIGINT, before)


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
