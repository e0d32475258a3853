"""`python -m tools.rehearsal VERB`: a Kubernetes cluster with simulated nodes, for trying things out."""

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from serving.errors import ConfigError
from tools.rehearsal import shell as user_shell
from tools.rehearsal.cluster import SimulatedCluster
from tools.rehearsal.namespace import ITEM
from tools.rehearsal.stack import rehearse
from tools.toolchain.console import Stopwatch, say
from tools.toolchain.errors import ToolchainError

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """A Kubernetes cluster with simulated nodes, for trying things out."""
    # So that `kill` takes the cluster down in order, as the end of the command does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


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
    directory = Path(tempfile.mkdtemp(prefix="pd-mi325x-cluster-"))
    watch = Stopwatch()
    say(ITEM, f"starting; logs in {directory / 'logs'}")
    with SimulatedCluster(directory, gpu_nodes=gpu_nodes) as cluster:
        say(ITEM, f"ready in {watch}\n{user_shell.SIMULATED}")
        code = user_shell.run(cluster, command or user_shell.default_command())
    shutil.rmtree(directory)  # stays where starting failed: the message names a log in it
    say(ITEM, "gone")
    raise typer.Exit(code)


if __name__ == "__main__":
    try:
        app()
    except (ToolchainError, ConfigError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
