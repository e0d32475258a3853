"""`python -m serving.fabric inspect`: what RDMA a node has, and what UCX and a pod need to use it."""

import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from serving.command_line import run
from serving.errors import ConfigError
from serving.fabric.choose import Choice, choose
from serving.fabric.node import NodeFabric, read_node
from serving.fabric.table import print_fabric

USABLE, NO_RDMA, NOT_USABLE = 0, 3, 4
_ENDS = (signal.SIGTERM, signal.SIGINT)
_LOG_WIDTH = 160  # columns where there is no terminal to ask

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)


class Format(StrEnum):
    table = "table"
    json = "json"


class Inspection(NodeFabric):
    """What `--format json` prints: the fabric, what follows from it, and the variables that engines get."""

    choice: Choice
    environment: dict[str, str]


@app.callback()
def commands() -> None:
    """A command stays a word of its own, also while there is only one."""


@app.command()
def inspect(
    root: Annotated[Path, typer.Option(help="Where the node's file system is, e.g. /host in a pod.")] = Path("/"),
    format: Annotated[Format, typer.Option(help="table: for people; json: for machines.")] = Format.table,
    ucx: Annotated[str, typer.Option(help="UCX version of the engines, for example 1.20.0, if it is known.")] = "",
    stay: Annotated[bool, typer.Option("--stay", help="Do not end, but for SIGTERM; JSON is one line then.")] = False,
) -> None:
    """Read the RDMA devices of this node, its kernel and its GPUs, and say what engines on it should use.

    Reads files only, and needs no privilege; in a pod hostNetwork, as network devices are those of a namespace.

    Exit code: 0 the fabric is usable; 3 the node has no RDMA device at all; 4 it has some, but none that is usable, or
    something was found that is an error; 1 and 2 the command itself was wrong. With --stay it is 0, as a pod of a
    DaemonSet that ends is started again, and has then said the same once more.
    """
    if stay:  # before anything is said: who read it may end this at once
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    if not (root / "sys").is_dir():
        raise ConfigError("--root", f"{root} has no sys folder", "name the root of a node's file system")
    fabric = read_node(root)
    choice = choose(fabric, ucx)
    if format is Format.json:
        inspection = Inspection(**dict(fabric), choice=choice, environment=choice.environment)
        typer.echo(inspection.model_dump_json(indent=None if stay else 2))
    else:
        print_fabric(Console(width=None if sys.stdout.isatty() else _LOG_WIDTH), fabric, choice)
    if stay:
        sys.stdout.flush()
        signal.sigwait(_ENDS)  # as process 1 of a container it would not hear of them otherwise
        raise typer.Exit(0)
    raise typer.Exit(NO_RDMA if not fabric.devices else USABLE if choice.usable else NOT_USABLE)


def main(arguments: list[str] | None = None) -> int:
    """Run one command, by default that of the command line. An exit code."""
    return run(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
