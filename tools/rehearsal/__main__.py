"""`python -m tools.rehearsal VERB`: a Kubernetes cluster with simulated nodes, for trying things out."""

import os
import sys
from typing import Annotated

import typer

from infra.provider.resource import ResourceError
from serving.errors import ConfigError
from tools import foreground
from tools.rehearsal import shell as user_shell
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.namespace import ITEM
from tools.rehearsal.stack import rehearse
from tools.rehearsal.state_directory import state_directory
from tools.toolchain.console import Stopwatch, say
from tools.toolchain.errors import ToolchainError

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """A Kubernetes cluster with simulated nodes, for trying things out."""
    # So that `kill` and a closed terminal take everything down in order, as Ctrl-C does; Typer makes it exit code 130.
    foreground.interruptible()
    # Nothing here reaches the internet, and the Kubernetes client would ask a proxy for 127.0.0.1 if NO_PROXY lacks it.
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]


@app.command()
def up(stack: Annotated[str, typer.Argument(help="a stack on Kubernetes, such as pd-2p1d")]) -> None:
    """Deploy STACK for real on a simulated cluster, print where every pod landed, and take it all down."""
    raise typer.Exit(rehearse(stack))


@app.command()
def shell(
    command: Annotated[list[str] | None, typer.Argument(help="instead of your $SHELL, after --")] = None,
    gpu_nodes: Annotated[int, typer.Option(min=0, help="simulated MI325X nodes")] = 4,
) -> None:
    """Bring a cluster up, open a shell in its network, and take everything down when the shell ends."""
    watch = Stopwatch()
    with state_directory(ITEM) as directory:
        say(ITEM, f"starting; logs in {directory / 'logs'}")
        with SimulatedCluster(directory, gpu_nodes=gpu_nodes) as cluster:
            say(ITEM, f"ready in {watch}\n{user_shell.GREETING}")
            code = user_shell.run(cluster, command or [])
    say(ITEM, "gone")
    raise typer.Exit(code)


if __name__ == "__main__":
    try:
        app()
    except (ToolchainError, ConfigError, ResourceError) as error:
        sys.exit(f"error: {error}")
